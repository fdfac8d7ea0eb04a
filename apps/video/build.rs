//! Compiles the part in C against the libvpx of this machine: its structures differ from version to version.

fn main() {
    println!("cargo:rerun-if-changed=src/vpx/shim.c");
    #[cfg(feature = "vpx")]
    compile();
}

#[cfg(feature = "vpx")]
fn compile() {
    let library = pkg_config::Config::new().atleast_version("1.11").probe("vpx").unwrap_or_else(|error| {
        panic!("libvpx 1.11 or later is needed (Debian package libvpx-dev): {error}");
    });
    cc::Build::new()
        .file("src/vpx/shim.c")
        .includes(library.include_paths)
        .std("c99")
        .compile("hvq_vpx_shim");
    // Behind the object that needs it: the linker reads libraries in order.
    for name in library.libs {
        println!("cargo:rustc-link-lib={name}");
    }
}
