"""The wheel: it holds the C library, and so is for one platform, but for every Python."""

import os

from setuptools import setup
from setuptools.command.bdist_wheel import bdist_wheel


class Wheel(bdist_wheel):
    def finalize_options(self):
        super().finalize_options()
        self.root_is_pure = False

    def get_tag(self):
        return ("py3", "none", super().get_tag()[2])


setup(version=os.environ.get("HVQ_VERSION", "0"), cmdclass={"bdist_wheel": Wheel})
