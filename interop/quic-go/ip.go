package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"runtime/debug"
	"time"

	connectip "github.com/quic-go/connect-ip-go"
	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
	"github.com/yosida95/uritemplate/v3"
)

// The path that RFC 9484, section 3, recommends, with all hosts and protocols.
const ipPath = "/.well-known/masque/ip/*/*/"

// What a proxy here answers for, and the address that it assigns.
var (
	answering = netip.MustParseAddr("192.0.2.1")
	assigned  = netip.MustParseAddr("192.0.2.2")
)

// ping sends echo requests of every size of IP packet from the smallest to most through a tunnel of the gateway, to the first
// address of each route, and prints how many were answered with a packet of the same size.
func ping(certificate, gateway, token string, most int) error {
	text, err := os.ReadFile(certificate)
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return fmt.Errorf("%s holds no certificate", certificate)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Second)
	defer cancel()
	request, err := connectip.NewRequest(ctx, uritemplate.MustNew("https://"+gateway+ipPath))
	if err != nil {
		return err
	}
	request.Header().Set("Authorization", "Bearer "+token)
	transport := &connectip.Transport{TLSClientConfig: &tls.Config{
		RootCAs: roots, ServerName: "localhost", NextProtos: []string{http3.NextProtoH3},
	}}
	tunnel, response, err := transport.Dial(request)
	if err != nil {
		return err
	}
	defer tunnel.Close()
	addresses, err := tunnel.ReceiveAddressAssignment(ctx)
	if err != nil {
		return err
	}
	routes, err := tunnel.Routes(ctx)
	if err != nil {
		return err
	}
	sent, answered := 0, 0
	for _, route := range routes {
		for _, own := range addresses {
			source, target := own.IPPrefix.Addr(), route.StartIP
			if source.Is4() != target.Is4() {
				continue
			}
			for size := len(echo(source, target, 0)); size <= most; size++ {
				sent++
				if exchange(tunnel, echo(source, target, size)) {
					answered++
				}
			}
		}
	}
	return json.NewEncoder(os.Stdout).Encode(map[string]any{
		"version":  moduleVersion("github.com/quic-go/connect-ip-go"),
		"status":   response.StatusCode,
		"sent":     sent,
		"answered": answered,
	})
}

// exchange tells whether packet was answered by one of its size, within three attempts.
func exchange(tunnel *connectip.Conn, packet []byte) bool {
	buffer := make([]byte, 2048)
	for range 3 {
		if icmp, err := tunnel.WritePacket(packet); err != nil || icmp != nil {
			return false
		}
		got := make(chan int, 1)
		go func() {
			for {
				length, err := tunnel.ReadPacket(buffer)
				if err != nil {
					got <- 0
					return
				}
				// The device has other things to say, too.
				if length == len(packet) {
					got <- length
					return
				}
			}
		}()
		select {
		case length := <-got:
			return length > 0
		case <-time.After(2 * time.Second):
		}
	}
	return false
}

// echo is an echo request (RFC 792, RFC 4443) in a packet of size bytes, or the smallest.
func echo(source, target netip.Addr, size int) []byte {
	head := 20
	if source.Is6() {
		head = 40
	}
	packet := make([]byte, max(size, head+8))
	message := packet[head:]
	copy(message[4:], []byte{0x12, 0x34, 0, 1})
	if source.Is6() {
		packet[0], packet[6], packet[7], message[0] = 0x60, 58, 64, 128
		binary.BigEndian.PutUint16(packet[4:], uint16(len(message)))
		copy(packet[8:], source.AsSlice())
		copy(packet[24:], target.AsSlice())
		binary.BigEndian.PutUint16(message[2:], checksum(packet[8:], uint32(len(message))+58))
		return packet
	}
	packet[0], packet[6], packet[8], packet[9], message[0] = 0x45, 0x40, 64, 1, 8
	binary.BigEndian.PutUint16(packet[2:], uint16(len(packet)))
	copy(packet[12:], source.AsSlice())
	copy(packet[16:], target.AsSlice())
	binary.BigEndian.PutUint16(packet[10:], checksum(packet[:20], 0))
	binary.BigEndian.PutUint16(message[2:], checksum(message, 0))
	return packet
}

// checksum is that of RFC 1071 over content, with first added.
func checksum(content []byte, first uint32) uint16 {
	sum := first
	for index, value := range content {
		if index%2 == 0 {
			sum += uint32(value) << 8
		} else {
			sum += uint32(value)
		}
	}
	for sum > 0xffff {
		sum = sum&0xffff + sum>>16
	}
	return ^uint16(sum)
}

// answer serves tunnels of CONNECT-IP and sends each packet of UDP back.
func answer(certificate, key string) error {
	pair, err := tls.LoadX509KeyPair(certificate, key)
	if err != nil {
		return err
	}
	socket, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return err
	}
	var proxy connectip.Proxy
	server := &http3.Server{
		TLSConfig:       http3.ConfigureTLSConfig(&tls.Config{Certificates: []tls.Certificate{pair}}),
		QUICConfig:      &quic.Config{EnableDatagrams: true, InitialPacketSize: 1350},
		EnableDatagrams: true,
		Handler: http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
			template := uritemplate.MustNew("https://" + request.Host + ipPath)
			parsed, err := connectip.ParseProxyRequest(request, template)
			if err != nil {
				writer.WriteHeader(http.StatusBadRequest)
				return
			}
			tunnel, err := proxy.Proxy(writer, parsed)
			if err == nil {
				err = answerIn(tunnel)
			}
			fmt.Fprintln(os.Stderr, "quic-go-peer: a tunnel ended:", err)
		}),
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(socket) }()
	fmt.Println(socket.LocalAddr().(*net.UDPAddr).Port, moduleVersion("github.com/quic-go/connect-ip-go"))
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

func answerIn(tunnel *connectip.Conn) error {
	if err := tunnel.AssignAddresses([]netip.Prefix{netip.PrefixFrom(assigned, 32)}); err != nil {
		return err
	}
	if err := tunnel.AdvertiseRoute([]connectip.IPRoute{{StartIP: answering, EndIP: answering}}); err != nil {
		return err
	}
	buffer := make([]byte, 2048)
	for {
		length, err := tunnel.ReadPacket(buffer)
		if err != nil {
			return err
		}
		packet := buffer[:length]
		if length < 28 || packet[0] != 0x45 || packet[9] != 17 {
			continue
		}
		// Sums stay right when source and destination change places.
		reply := append(make([]byte, 0, length), packet...)
		copy(reply[12:16], packet[16:20])
		copy(reply[16:20], packet[12:16])
		copy(reply[20:22], packet[22:24])
		copy(reply[22:24], packet[20:22])
		if _, err := tunnel.WritePacket(reply); errors.Is(err, net.ErrClosed) {
			return err
		}
	}
}

// reflected sends UDP of every size of IP packet up to most to an address and prints how much came back as it was.
func reflected(address string, most int) error {
	socket, err := net.Dial("udp", address)
	if err != nil {
		return err
	}
	sent, answered, buffer := 0, 0, make([]byte, 2048)
	for size := 29; size <= most; size++ {
		payload := make([]byte, size-28)
		for index := range payload {
			payload[index] = byte(size + index)
		}
		sent++
		for range 3 {
			if _, err := socket.Write(payload); err != nil {
				break
			}
			if err := socket.SetReadDeadline(time.Now().Add(2 * time.Second)); err != nil {
				return err
			}
			length, err := socket.Read(buffer)
			if err == nil && bytes.Equal(buffer[:length], payload) {
				answered++
				break
			}
		}
	}
	return json.NewEncoder(os.Stdout).Encode(map[string]any{"sent": sent, "answered": answered})
}

func moduleVersion(path string) string {
	information, ok := debug.ReadBuildInfo()
	if ok {
		for _, module := range information.Deps {
			if module.Path == path {
				return module.Version
			}
		}
	}
	return "?"
}
