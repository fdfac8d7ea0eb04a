package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
	_ "unsafe" // for go:linkname

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

// Files over HTTP/0.9, as the QUIC interop runner calls it.
const hq = "hq-interop"

// The longest request, and how long a session ticket is waited for.
const (
	longestRequest = 4096
	ticketPatience = 10 * time.Second
)

// errUnsupported is said about test cases that quic-go does not know.
var errUnsupported = errors.New("unsupported test case")

// What crypto/tls offers and accepts of TLS 1.3, with and without hardware for AES. There is no public way to change it.
//
//go:linkname defaultCipherSuitesTLS13 crypto/tls.defaultCipherSuitesTLS13
var defaultCipherSuitesTLS13 []uint16

//go:linkname defaultCipherSuitesTLS13NoAES crypto/tls.defaultCipherSuitesTLS13NoAES
var defaultCipherSuitesTLS13NoAES []uint16

// endpoint plays the side of the interop runner's test case that the environment asks for.
func endpoint() error {
	testcase := os.Getenv("TESTCASE")
	if testcase == "chacha20" {
		defaultCipherSuitesTLS13 = []uint16{tls.TLS_CHACHA20_POLY1305_SHA256}
		defaultCipherSuitesTLS13NoAES = defaultCipherSuitesTLS13
	}
	keys, err := os.OpenFile(os.Getenv("SSLKEYLOGFILE"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer keys.Close()
	if os.Getenv("ROLE") == "server" {
		return endpointServer(testcase, keys)
	}
	return endpointClient(testcase, keys)
}

func endpointServer(testcase string, keys io.Writer) error {
	switch testcase {
	case "handshake", "transfer", "chacha20", "retry", "resumption", "zerortt", "http3", "multiconnect", "ecn":
	default:
		return errUnsupported
	}
	certificates := os.Getenv("CERTS")
	pair, err := tls.LoadX509KeyPair(
		filepath.Join(certificates, "cert.pem"), filepath.Join(certificates, "priv.key"))
	if err != nil {
		return err
	}
	address, err := net.ResolveUDPAddr("udp", os.Getenv("LISTEN"))
	if err != nil {
		return err
	}
	socket, err := net.ListenUDP("udp", address)
	if err != nil {
		return err
	}
	configuration := &tls.Config{Certificates: []tls.Certificate{pair}, KeyLogWriter: keys, NextProtos: []string{hq}}
	limits := &quic.Config{Allow0RTT: testcase == "zerortt", HandshakeIdleTimeout: time.Minute}
	if testcase == "http3" {
		server := &http3.Server{
			Handler:    http.FileServer(http.Dir(os.Getenv("WWW"))),
			TLSConfig:  http3.ConfigureTLSConfig(configuration),
			QUICConfig: limits,
		}
		return server.Serve(socket)
	}
	transport := &quic.Transport{
		Conn:                socket,
		VerifySourceAddress: func(net.Addr) bool { return testcase == "retry" },
	}
	listener, err := transport.ListenEarly(configuration, limits)
	if err != nil {
		return err
	}
	for {
		connection, err := listener.Accept(context.Background())
		if err != nil {
			return err
		}
		go serveFiles(connection)
	}
}

func serveFiles(connection *quic.Conn) {
	for {
		stream, err := connection.AcceptStream(context.Background())
		if err != nil {
			return
		}
		go func() {
			defer stream.Close()
			request, err := io.ReadAll(io.LimitReader(stream, longestRequest))
			path, found := bytes.CutPrefix(bytes.TrimSpace(request), []byte("GET /"))
			if err != nil || !found {
				stream.CancelWrite(1)
				return
			}
			content, err := os.ReadFile(filepath.Join(os.Getenv("WWW"), filepath.Base(string(path))))
			if err != nil {
				stream.CancelWrite(1)
				return
			}
			_, _ = stream.Write(content)
		}()
	}
}

// A downloader is a client with the test case's configuration.
type downloader struct {
	tls     *tls.Config
	quic    *quic.Config
	tickets chan struct{}
}

// A ticketCache says when a ticket arrives.
type ticketCache struct {
	tls.ClientSessionCache
	arrived chan<- struct{}
}

func (cache *ticketCache) Put(key string, state *tls.ClientSessionState) {
	cache.ClientSessionCache.Put(key, state)
	select {
	case cache.arrived <- struct{}{}:
	default:
	}
}

func endpointClient(testcase string, keys io.Writer) error {
	pem, err := os.ReadFile(filepath.Join(os.Getenv("CERTS"), "ca.pem"))
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	tickets := make(chan struct{}, 1)
	client := &downloader{
		tls: &tls.Config{
			RootCAs:            roots,
			ServerName:         "server",
			KeyLogWriter:       keys,
			NextProtos:         []string{hq},
			ClientSessionCache: &ticketCache{tls.NewLRUClientSessionCache(1), tickets},
		},
		quic:    &quic.Config{HandshakeIdleTimeout: time.Minute},
		tickets: tickets,
	}
	requests := strings.Fields(os.Getenv("REQUESTS"))
	switch testcase {
	case "handshake", "transfer", "chacha20", "retry", "keyupdate", "ecn":
		return client.download(requests, false)
	case "multiconnect":
		for _, request := range requests {
			if err := client.download([]string{request}, false); err != nil {
				return err
			}
		}
		return nil
	case "resumption", "zerortt":
		if err := client.download(requests[:1], false); err != nil {
			return err
		}
		return client.download(requests[1:], testcase == "zerortt")
	case "http3":
		return client.http3(requests)
	default:
		return errUnsupported
	}
}

// download fetches all requests over one connection, and waits for a ticket at its end.
func (client *downloader) download(requests []string, early bool) error {
	target, err := url.Parse(requests[0])
	if err != nil {
		return err
	}
	address, err := net.ResolveUDPAddr("udp", target.Host)
	if err != nil {
		return err
	}
	socket, err := net.ListenUDP("udp", &net.UDPAddr{})
	if err != nil {
		return err
	}
	defer socket.Close()
	transport := &quic.Transport{Conn: socket}
	defer transport.Close()
	connection, err := transport.DialEarly(context.Background(), address, client.tls, client.quic)
	if err != nil {
		return err
	}
	defer connection.CloseWithError(0, "")
	if !early {
		<-connection.HandshakeComplete()
	}
	if os.Getenv("CASE") == "connectionmigration" {
		if err := migrate(connection); err != nil {
			return err
		}
	}
	errs := make([]error, len(requests))
	var group sync.WaitGroup
	for index, request := range requests {
		group.Go(func() { errs[index] = fetch(connection, request) })
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if early && !connection.ConnectionState().Used0RTT {
		return errors.New("the server did not accept 0-RTT")
	}
	if testcase := os.Getenv("TESTCASE"); testcase == "resumption" || testcase == "zerortt" {
		select {
		case <-client.tickets:
		case <-time.After(ticketPatience):
			return errors.New("the server sends no session ticket")
		}
	}
	return nil
}

// migrate moves the connection to another port: quic-go does not follow preferred addresses.
func migrate(connection *quic.Conn) error {
	socket, err := net.ListenUDP("udp", &net.UDPAddr{})
	if err != nil {
		return err
	}
	// Connection IDs for another path come after the handshake.
	time.Sleep(200 * time.Millisecond)
	path, err := connection.AddPath(&quic.Transport{Conn: socket})
	if err != nil {
		return err
	}
	if err := path.Probe(context.Background()); err != nil {
		return err
	}
	return path.Switch()
}

func fetch(connection *quic.Conn, request string) error {
	target, err := url.Parse(request)
	if err != nil {
		return err
	}
	stream, err := connection.OpenStreamSync(context.Background())
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(stream, "GET %s\r\n", target.Path); err != nil {
		return err
	}
	if err := stream.Close(); err != nil {
		return err
	}
	return keep(stream, target)
}

func (client *downloader) http3(requests []string) error {
	transport := &http3.Transport{TLSClientConfig: client.tls, QUICConfig: client.quic}
	client.tls.NextProtos = []string{http3.NextProtoH3}
	defer transport.Close()
	errs := make([]error, len(requests))
	var group sync.WaitGroup
	for index, request := range requests {
		group.Go(func() {
			response, err := (&http.Client{Transport: transport}).Get(request)
			if err == nil {
				defer response.Body.Close()
				err = keep(response.Body, response.Request.URL)
			}
			errs[index] = err
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

// keep writes what content holds into the folder for downloads.
func keep(content io.Reader, target *url.URL) error {
	file, err := os.Create(filepath.Join(os.Getenv("DOWNLOADS"), filepath.Base(target.Path)))
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = io.Copy(file, content)
	return err
}
