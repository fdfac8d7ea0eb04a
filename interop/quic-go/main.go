// Command quic-go-peer is quic-go as a peer of hvq: an HTTP/3 client that prints what it received, or a server.
//
//	quic-go-peer get  [-v2] CERTIFICATE URL       one JSON object on standard output
//	quic-go-peer serve CERTIFICATE KEY FOLDER      prints its port and version, serves until standard input ends
//	quic-go-peer ping CERTIFICATE GATEWAY TOKEN MOST   packets through CONNECT-IP; one JSON object on standard output
//	quic-go-peer answer CERTIFICATE KEY            as serve, but for CONNECT-IP: UDP comes back
//	quic-go-peer reflected ADDRESS:PORT MOST       UDP to there, which comes back; one JSON object
//	quic-go-peer version                           prints quic-go's version
//	quic-go-peer endpoint                          an endpoint of the QUIC interop runner, told by its environment
package main

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		if errors.Is(err, errUnsupported) {
			os.Exit(127)
		}
		fmt.Fprintln(os.Stderr, "quic-go-peer:", err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	if len(arguments) > 0 && arguments[0] == "get" {
		flags := flag.NewFlagSet("get", flag.ContinueOnError)
		second := flags.Bool("v2", false, "start with QUIC version 2")
		if err := flags.Parse(arguments[1:]); err != nil {
			return err
		}
		if flags.NArg() == 2 {
			return get(*second, flags.Arg(0), flags.Arg(1))
		}
	}
	if len(arguments) == 1 && arguments[0] == "endpoint" {
		return endpoint()
	}
	if len(arguments) == 1 && arguments[0] == "version" {
		fmt.Println(version())
		return nil
	}
	if len(arguments) == 4 && arguments[0] == "serve" {
		return serve(arguments[1], arguments[2], arguments[3])
	}
	if len(arguments) == 5 && arguments[0] == "ping" {
		most, err := strconv.Atoi(arguments[4])
		if err != nil {
			return err
		}
		return ping(arguments[1], arguments[2], arguments[3], most)
	}
	if len(arguments) == 3 && arguments[0] == "reflected" {
		most, err := strconv.Atoi(arguments[2])
		if err != nil {
			return err
		}
		return reflected(arguments[1], most)
	}
	if len(arguments) == 3 && arguments[0] == "answer" {
		return answer(arguments[1], arguments[2])
	}
	return fmt.Errorf("usage: get [-v2] CERTIFICATE URL | serve CERTIFICATE KEY FOLDER | ping CERTIFICATE GATEWAY TOKEN MOST | answer CERTIFICATE KEY | reflected ADDRESS:PORT MOST | endpoint | version")
}

func get(second bool, certificate, url string) error {
	pem, err := os.ReadFile(certificate)
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return fmt.Errorf("%s holds no certificate", certificate)
	}
	versions := []quic.Version{quic.Version1}
	if second {
		versions = []quic.Version{quic.Version2}
	}
	transport := &http3.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "localhost"},
		QUICConfig:      &quic.Config{Versions: versions},
	}
	defer transport.Close()
	response, err := (&http.Client{Transport: transport}).Get(url)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	hash := sha256.New()
	length, err := io.Copy(hash, response.Body)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(map[string]any{
		"version": version(),
		"status":  response.StatusCode,
		"bytes":   length,
		"sha256":  fmt.Sprintf("%x", hash.Sum(nil)),
	})
}

func serve(certificate, key, folder string) error {
	pair, err := tls.LoadX509KeyPair(certificate, key)
	if err != nil {
		return err
	}
	socket, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return err
	}
	server := &http3.Server{
		Handler:    http.FileServer(http.Dir(folder)),
		TLSConfig:  http3.ConfigureTLSConfig(&tls.Config{Certificates: []tls.Certificate{pair}}),
		QUICConfig: &quic.Config{},
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(socket) }()
	fmt.Println(socket.LocalAddr().(*net.UDPAddr).Port, version())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		server.Close()
	}()
	if err := <-ended; err != nil && err != http.ErrServerClosed {
		return err
	}
	return nil
}

func version() string {
	return moduleVersion("github.com/quic-go/quic-go")
}
