"""Fetches one file over HTTP/3 with libcurl and prints what arrived: pycurl_get.py PORT PATH CERTIFICATE"""

import hashlib
import json
import sys

import pycurl

port, path, certificate = sys.argv[1:]
digest = hashlib.sha256()
length = 0


def receive(data):
    global length
    length += len(data)
    digest.update(data)


curl = pycurl.Curl()
curl.setopt(pycurl.URL, f"https://localhost:{port}{path}")
curl.setopt(pycurl.RESOLVE, [f"localhost:{port}:127.0.0.1"])
curl.setopt(pycurl.CAINFO, certificate)
curl.setopt(pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_3ONLY)
curl.setopt(pycurl.WRITEFUNCTION, receive)
curl.perform()
libraries = pycurl.version.split()
wanted = ("libcurl/", "ngtcp2/", "nghttp3/")
version = " ".join(part for part in libraries if part.startswith(wanted))
status = curl.getinfo(pycurl.RESPONSE_CODE)
# CURL_HTTP_VERSION_3 is 30.
if curl.getinfo(pycurl.INFO_HTTP_VERSION) != 30:
    sys.exit("libcurl did not use HTTP/3")
curl.close()
print(json.dumps({"version": version, "status": status, "bytes": length, "sha256": digest.hexdigest()}))
