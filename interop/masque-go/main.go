// Command masque-go-peer is masque-go as a peer of hvq: a client of CONNECT-UDP that does HTTP/3 inside, or a proxy.
//
//	masque-go-peer identity FOLDER                      writes authority.pem and a client's client.pem and client.key
//	masque-go-peer get CERTIFICATE FOLDER GATEWAY URL   one JSON object on standard output
//	masque-go-peer proxy CERTIFICATE KEY                prints its port and version, serves until standard input ends
package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"github.com/quic-go/masque-go"
	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
	"github.com/yosida95/uritemplate/v3"
)

// The path that RFC 9298, section 3, recommends.
const path = "/.well-known/masque/udp/{target_host}/{target_port}/"

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "masque-go-peer:", err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	switch {
	case len(arguments) == 2 && arguments[0] == "identity":
		return identity(arguments[1])
	case len(arguments) == 5 && arguments[0] == "get":
		return get(arguments[1], arguments[2], arguments[3], arguments[4])
	case len(arguments) == 3 && arguments[0] == "proxy":
		return proxy(arguments[1], arguments[2])
	}
	return fmt.Errorf("usage: identity FOLDER | get CERTIFICATE FOLDER GATEWAY URL | proxy CERTIFICATE KEY")
}

// identity makes an authority and a client that it vouches for: masque-go sends no fields of its own, so no token either.
func identity(folder string) error {
	authority := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "an authority"},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(time.Hour),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign,
	}
	client := &x509.Certificate{
		SerialNumber: big.NewInt(2),
		NotBefore:    authority.NotBefore,
		NotAfter:     authority.NotAfter,
		DNSNames:     []string{"peer.example"},
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	of, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	root, err := x509.CreateCertificate(rand.Reader, authority, authority, &of.PublicKey, of)
	if err != nil {
		return err
	}
	leaf, err := x509.CreateCertificate(rand.Reader, client, authority, &key.PublicKey, of)
	if err != nil {
		return err
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	for name, block := range map[string]*pem.Block{
		"authority.pem": {Type: "CERTIFICATE", Bytes: root},
		"client.pem":    {Type: "CERTIFICATE", Bytes: leaf},
		"client.key":    {Type: "PRIVATE KEY", Bytes: encoded},
	} {
		if err := os.WriteFile(filepath.Join(folder, name), pem.EncodeToMemory(block), 0o600); err != nil {
			return err
		}
	}
	return nil
}

func get(certificate, folder, gateway, address string) error {
	text, err := os.ReadFile(certificate)
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return fmt.Errorf("%s holds no certificate", certificate)
	}
	own, err := tls.LoadX509KeyPair(filepath.Join(folder, "client.pem"), filepath.Join(folder, "client.key"))
	if err != nil {
		return err
	}
	target, err := url.Parse(address)
	if err != nil {
		return err
	}
	remote, err := net.ResolveUDPAddr("udp", target.Host)
	if err != nil {
		return err
	}
	outer := &masque.Client{TLSClientConfig: &tls.Config{
		RootCAs: roots, ServerName: "localhost", NextProtos: []string{http3.NextProtoH3}, Certificates: []tls.Certificate{own},
	}}
	defer outer.Close()
	template := uritemplate.MustNew("https://" + gateway + path)
	transport := &http3.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "localhost"},
		Dial: func(ctx context.Context, _ string, tlsConfig *tls.Config, config *quic.Config) (*quic.Conn, error) {
			tunnel, _, err := outer.Dial(ctx, template, remote)
			if err != nil {
				return nil, err
			}
			config = config.Clone()
			config.DisablePathMTUDiscovery = true
			return quic.Dial(ctx, tunnel, remote, tlsConfig, config)
		},
	}
	defer transport.Close()
	response, err := (&http.Client{Transport: transport}).Get(address)
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

func proxy(certificate, key string) error {
	pair, err := tls.LoadX509KeyPair(certificate, key)
	if err != nil {
		return err
	}
	socket, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return err
	}
	port := socket.LocalAddr().(*net.UDPAddr).Port
	template := uritemplate.MustNew(fmt.Sprintf("https://localhost:%d%s", port, path))
	var tunnels masque.Proxy
	server := &http3.Server{
		TLSConfig:       http3.ConfigureTLSConfig(&tls.Config{Certificates: []tls.Certificate{pair}}),
		QUICConfig:      &quic.Config{EnableDatagrams: true, InitialPacketSize: 1350},
		EnableDatagrams: true,
		Handler: http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
			parsed, err := masque.ParseRequest(request, template)
			if err != nil {
				writer.WriteHeader(http.StatusBadRequest)
				return
			}
			if err := tunnels.Proxy(writer, parsed); err != nil {
				fmt.Fprintln(os.Stderr, "masque-go-peer:", err)
			}
		}),
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(socket) }()
	fmt.Println(port, version())
	ended := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, os.Stdin)
		ended <- err
	}()
	select {
	case err := <-failed:
		return err
	case err := <-ended:
		return err
	}
}

func version() string {
	information, ok := debug.ReadBuildInfo()
	if ok {
		for _, module := range information.Deps {
			if module.Path == "github.com/quic-go/masque-go" {
				return module.Version
			}
		}
	}
	return "?"
}
