/*
 * hvq: multipath QUIC endpoints without I/O.
 *
 * QUIC (RFC 9000, 9001, 9002, 9369), datagrams (RFC 9221) and several paths for each connection (RFC 10069), with schedulers
 * that know how channels differ. The library opens no socket, reads no clock and starts no thread, but for one that
 * writes qlog files if there are any: datagrams, commands and the time go in, datagrams and events come out.
 *
 * Objects
 *
 *     hvq_client_config, hvq_server_config    what connections are made from: TLS, limits, the scheduler. Not changed
 *                                             once they are made; one serves many connections.
 *     hvq_endpoint                            many connections behind a few sockets of the program, of a client, a
 *                                             server or both.
 *     connections, streams, paths             numbers. A connection is named by a number of its endpoint, a stream and a
 *                                             path by that and a number of their own. None is ever used twice, so that
 *                                             late calls find nothing instead of something else.
 *
 * The life of a connection
 *
 *     1. Make a configuration: hvq_client_options_init(), change what shall differ, hvq_client_config_new(). A server does
 *        the same with hvq_server_options_init() and hvq_server_config_new().
 *     2. Make an endpoint: hvq_endpoint_new(), for a server with its configuration. Open sockets and set them to
 *        non-blocking; the library does not know of them.
 *     3. A client calls hvq_endpoint_connect(). A server learns of connections by HVQ_EVENT_CONNECTED.
 *     4. Then, for as long as the program runs:
 *          a. hvq_endpoint_poll() until it says HVQ_OUTPUT_IDLE. Send each HVQ_OUTPUT_TRANSMIT from the socket of its local
 *             address, act upon each HVQ_OUTPUT_EVENT.
 *          b. Wait until a socket is readable, the deadline of the last poll has passed, or the program wants something.
 *          c. hvq_endpoint_handle() for each datagram that arrived; commands such as hvq_stream_write().
 *     5. HVQ_EVENT_CONNECTED: the peer is authenticated. hvq_stream_open() and hvq_stream_accept() give streams, which are
 *        written and read until that is blocked; events tell when to go on. HVQ_EVENT_PATH_AVAILABLE: a client may call
 *        hvq_path_open() for its second socket. The scheduler divides what is written among the paths.
 *     6. hvq_connection_close(), or the peer closes, or nothing arrives for too long: HVQ_EVENT_CLOSED says which. Poll on:
 *        the peer is told. HVQ_EVENT_FORGOTTEN: the number is void.
 *     7. hvq_endpoint_free(). Configurations can be freed as soon as nothing more shall be made from them.
 *
 * Results
 *
 *     Functions return HVQ_OK or a negative number (see Errors) unless they say otherwise. If it is negative, nothing was
 *     done and nothing was written but what the function says. NULL, numbers of connections, streams and paths that do not
 *     exist, calls at the wrong time, and calls from callbacks or from two threads at a time are such errors and do no harm.
 *     Every function that takes an endpoint may also return HVQ_ERR_PANIC after a failure of the library.
 *     What cannot be found out is the duty of the program: other pointers are valid, that is to objects made by the library
 *     and not freed, to structs, to text that ends with a zero byte, or to as many bytes as their length says.
 *
 * Ownership
 *
 *     What the library makes is freed by its own free functions; what the program makes, by the program. Arguments are only
 *     used during the call, unless the function says otherwise. Where the library lends bytes, it says for how long: mostly
 *     until the next call of the same function for the same endpoint.
 *
 * Threads
 *
 *     An endpoint belongs to no thread, and is used by one at a time: a second one gets HVQ_ERR_BUSY at once, it does not
 *     wait. Different endpoints can be used at the same time, as can configurations. Callbacks are called within calls of
 *     the library, by the thread that called it; from there the endpoint is busy too. They must return: no longjmp, and no
 *     exception of C++.
 *
 * Versions
 *
 *     Structs that begin with `size` can grow in later versions: have them filled by their init function, or set `size` to
 *     sizeof and everything else to zeros where there is none. A library takes the structs of programs that were compiled
 *     with an older header, and those of a newer one as long as what it does not know is zero. Other structs keep their
 *     layout while the major version is the same. Functions carry the version that they came with (HVQ_0.1), and none is
 *     taken out. Kinds of events and error numbers can be added, so expect unknown ones.
 *
 * Linking
 *
 *     With libhvq.so, which shows nothing but hvq_ names:
 *         cc program.c $(pkg-config --cflags --libs hvq)
 *     With libhvq.a, likewise, or libhvq-boringssl.a, whose BoringSSL the program may use:
 *         cc program.c $(pkg-config --static --cflags --libs hvq | sed 's/-lhvq /-l:libhvq.a /')
 *     With CMake: find_package(hvq 0 REQUIRED CONFIG), then link hvq::hvq or hvq::static.
 *
 * Whole programs are in ffi/examples of the sources: echo.c is the one to begin with.
 *
 * Contents
 *
 *     Errors
 *     Time, addresses and bytes
 *     The version of the library
 *     Logging
 *     Configuration of connections
 *     Session tickets
 *     Admission
 *     TLS, and what connections are made from
 *     Outputs of an endpoint that is polled
 *     Endpoints
 *     Connections
 *     Streams
 *     Datagrams (RFC 9221): short messages that arrive once, late, or never
 *     Paths (RFC 10069)
 *     Counters
 *     Schedulers of your own
 *
 * This file is generated from the sources of the library.
 */
#ifndef HVQ_H
#define HVQ_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An endpoint: client, server or both. */
typedef struct hvq_endpoint hvq_endpoint;
/* See Schedulers of your own. */
typedef struct hvq_scheduler hvq_scheduler;

/* ------------------------------------------------------------------------
 * Errors
 *
 * Almost every function returns an hvq_result: 0, or a negative number that says why nothing was done. The numbers
 * never change their meaning; new ones are added below the smallest. The text of a failure is kept for each thread
 * until its next call fails.
 * ------------------------------------------------------------------------ */

/// The outcome of a call: HVQ_OK, or one of the negative HVQ_ERR_ numbers.
typedef int32_t hvq_result;

/// Done.
#define HVQ_OK 0
/// A pointer that must not be NULL is NULL.
#define HVQ_ERR_NULL (-1)
/// An argument has no meaning: a number out of range, text that is not UTF-8, a struct of an unknown size.
#define HVQ_ERR_ARGUMENT (-2)
/// The endpoint is in use: another thread is in a call on it, or a callback of it called it.
#define HVQ_ERR_BUSY (-3)
/// The library failed, and the endpoint is of no use any more. Only hvq_endpoint_free may follow.
#define HVQ_ERR_PANIC (-4)
/// The endpoint has no connection of this number, or has none any more.
#define HVQ_ERR_UNKNOWN_CONNECTION (-5)
/// The connection has no such stream, or the stream does not go in this direction, or it is over.
#define HVQ_ERR_UNKNOWN_STREAM (-6)
/// The connection has no open path of this number.
#define HVQ_ERR_UNKNOWN_PATH (-7)
/// Nothing can be done now; an event tells when to try again.
#define HVQ_ERR_BLOCKED (-8)
/// There is nothing, or nothing more.
#define HVQ_ERR_NONE (-9)
/// All of the stream has been read.
#define HVQ_ERR_END (-10)
/// The stream was finished or reset here.
#define HVQ_ERR_FINISHED (-11)
/// The stream was stopped: by the peer if it was to be written, whose code hvq_last_error_code() tells, or here if it was
/// to be read.
#define HVQ_ERR_STOPPED (-12)
/// The peer reset the stream, with the code that hvq_last_error_code() tells.
#define HVQ_ERR_RESET (-13)
/// The buffer is too small.
#define HVQ_ERR_TOO_SMALL (-14)
/// More than the peer, the network or a limit permits.
#define HVQ_ERR_TOO_LARGE (-15)
/// The peer did not offer it: datagrams, or several paths.
#define HVQ_ERR_NOT_NEGOTIATED (-16)
/// Only clients do that.
#define HVQ_ERR_NOT_CLIENT (-17)
/// The handshake is not complete, or the connection is closing.
#define HVQ_ERR_NOT_CONNECTED (-18)
/// A limit is reached: paths of the connection, or connections of the endpoint.
#define HVQ_ERR_LIMIT (-19)
/// The peer permits no other addresses.
#define HVQ_ERR_FORBIDDEN (-20)
/// The peer has issued no connection ID for it yet. Try again later.
#define HVQ_ERR_NO_CONNECTION_ID (-21)
/// The last path of a connection can only go with the connection.
#define HVQ_ERR_LAST_PATH (-22)
/// TLS cannot be set up so; hvq_last_error() tells more.
#define HVQ_ERR_TLS (-23)
/// A name that nothing has: of a scheduler or a congestion controller.
#define HVQ_ERR_UNKNOWN_NAME (-24)
/// The system failed; hvq_last_error() tells more.
#define HVQ_ERR_SYSTEM (-25)

/// The name of a result, such as "HVQ_ERR_NULL"; "HVQ_ERR_?" for a number that this library does not know. The text is
/// static.
const char *hvq_error_name(hvq_result result);

/// Returns the meaning of a result, in English and without a full stop. The text is static.
const char *hvq_error_text(hvq_result result);

/// Writes the message of the last call that failed on this thread beyond its number, as text that ends with a zero byte
/// and is cut if `capacity` bytes are too few. Returns the number of bytes that the whole text needs, the zero byte
/// included; `buffer` may be NULL if `capacity` is 0.
size_t hvq_last_error(char *buffer,
                      size_t capacity);

/// The code of the peer's application that came with the last call that failed on this thread (HVQ_ERR_STOPPED,
/// HVQ_ERR_RESET), or 0.
uint64_t hvq_last_error_code(void);

/* ------------------------------------------------------------------------
 * Time, addresses and bytes
 *
 * Times are nanoseconds since a moment of the caller's choice, the same for all calls on an endpoint; a monotonic clock
 * such as CLOCK_MONOTONIC serves well. The library reads no clock. Durations are nanoseconds too.
 * ------------------------------------------------------------------------ */

/// A moment that never comes: no deadline.
#define HVQ_NEVER UINT64_MAX

/// An IP address and a port. Zeros are no address.
typedef struct hvq_address {
    /// 4 or 6; 0 for no address.
    uint16_t family;
    /// The port, in the byte order of the machine.
    uint16_t port;
    /// The scope of a link-local IPv6 address (the number of the interface), else 0.
    uint32_t scope;
    /// The address in network byte order; an IPv4 address has the first four bytes.
    uint8_t ip[16];
} hvq_address;

/// The route of datagrams: from a local address to a remote one.
typedef struct hvq_route {
    /// The address of a socket of the program. Both addresses of a route are of one family.
    hvq_address local;
    /// The address of the peer.
    hvq_address remote;
} hvq_route;

/// Bytes that belong to somebody else.
typedef struct hvq_bytes {
    /// The first byte; may be NULL if there are none.
    const uint8_t *data;
    /// The number of bytes.
    size_t length;
} hvq_bytes;

/// Room of the caller for bytes.
typedef struct hvq_buffer {
    /// The first byte.
    uint8_t *data;
    /// The number of bytes that there is room for.
    size_t capacity;
    /// The number of bytes that were written, or would have been.
    size_t length;
} hvq_buffer;

/// Reads an address from text such as `192.0.2.1:443` or `[2001:db8::1]:443`. Host names are not looked up.
///
/// Errors: HVQ_ERR_NULL, HVQ_ERR_ARGUMENT if it is no address with a port.
hvq_result hvq_address_parse(const char *text, hvq_address *address);

/// Writes an address as text into `buffer`, with a zero byte at the end. 64 bytes are always enough.
///
/// Errors: HVQ_ERR_NULL, HVQ_ERR_ARGUMENT if it is none, HVQ_ERR_TOO_SMALL if it does not fit; what fits was written.
hvq_result hvq_address_format(const hvq_address *address,
                              char *buffer,
                              size_t capacity);

/// Reads an address from a struct sockaddr_in or struct sockaddr_in6 of `length` bytes.
///
/// Errors: HVQ_ERR_NULL, HVQ_ERR_ARGUMENT if it is neither, or cut off.
hvq_result hvq_address_from_sockaddr(const void *sockaddr, size_t length, hvq_address *address);

/// Writes an address as a struct sockaddr_in or struct sockaddr_in6 into `capacity` bytes at `sockaddr`, and the size
/// of that into `length`. A struct sockaddr_storage is always large enough.
///
/// Errors: HVQ_ERR_NULL, HVQ_ERR_TOO_SMALL, HVQ_ERR_ARGUMENT if the address is none.
hvq_result hvq_address_to_sockaddr(const hvq_address *address,
                                   void *sockaddr,
                                   size_t capacity,
                                   size_t *length);

/* ------------------------------------------------------------------------
 * The version of the library
 * ------------------------------------------------------------------------ */

/// The version of the header, which hvq_version() should begin with.
#define HVQ_VERSION_MAJOR 0
/// The second number of the version.
#define HVQ_VERSION_MINOR 1

/// The version of the library, such as "0.1.0". The text is static.
const char *hvq_version(void);

/* ------------------------------------------------------------------------
 * Logging
 * ------------------------------------------------------------------------ */

/// Beginnings, ends, handshakes and paths.
#define HVQ_LOG_INFO 1
/// Also losses, packets that were ignored and key updates.
#define HVQ_LOG_DEBUG 2
/// Also every packet and every frame.
#define HVQ_LOG_TRACE 3

/// Called with a line about a connection: its time in nanoseconds, HVQ_LOG_..., and text without a line break that ends
/// with a zero byte and is valid during the call. No payload and no key is ever in it. It is called within calls on the
/// endpoint, on their thread, and must not call the library for the same endpoint. `user` must stand calls from several
/// threads if several endpoints share it.
typedef void (*hvq_log_callback)(void *user, uint64_t now, uint32_t level, const char *line);

/* ------------------------------------------------------------------------
 * Configuration of connections
 *
 * Structs that may grow begin with their size, so that programs and libraries of different versions agree: have them
 * filled by their init function, then change what shall differ. Data that a configuration points to is copied when it
 * is used, unless it says otherwise.
 * ------------------------------------------------------------------------ */

/// QUIC version 1 (RFC 9000).
#define HVQ_QUIC_1 1
/// QUIC version 2 (RFC 9369).
#define HVQ_QUIC_2 0x6b3343cf

/// Nobody said whether others use the channel too.
#define HVQ_SHARING_UNKNOWN 0
/// The channel is shared with other traffic.
#define HVQ_SHARING_SHARED 1
/// The channel's rate is reserved for this connection: the path is paced to it.
#define HVQ_SHARING_DEDICATED 2
/// The rate is reserved for this endpoint, and its connections share it.
#define HVQ_SHARING_ENDPOINT 3

/// `rate` of the hints is known.
#define HVQ_HINT_RATE 1
/// `delay` of the hints is known.
#define HVQ_HINT_DELAY 2
/// `loss` of the hints is known.
#define HVQ_HINT_LOSS 4
/// `price` of the hints is known.
#define HVQ_HINT_PRICE 8
/// `rate_back` of the hints is known.
#define HVQ_HINT_RATE_BACK 16

/// Nobody said whether the channel is metered.
#define HVQ_METERING_UNKNOWN 0
/// Nobody counts the bytes of the channel.
#define HVQ_METERING_UNMETERED 1
/// The bytes of the channel are paid for, or count against a volume.
#define HVQ_METERING_METERED 2

/// Hints of the program or the modem about a channel. Zeros say nothing.
typedef struct hvq_hints {
    /// The fields below that are known: HVQ_HINT_RATE and others, added up.
    uint32_t known;
    /// HVQ_SHARING_UNKNOWN, HVQ_SHARING_SHARED, HVQ_SHARING_DEDICATED or HVQ_SHARING_ENDPOINT.
    uint32_t sharing;
    /// The rate of what this end sends, in bits per second.
    uint64_t rate;
    /// The one-way delay in nanoseconds.
    uint64_t delay;
    /// The price of a byte, in any unit. Only comparisons between paths count.
    uint64_t price;
    /// The loss to expect, in thousandths.
    uint32_t loss;
    /// HVQ_METERING_UNKNOWN, HVQ_METERING_UNMETERED or HVQ_METERING_METERED.
    uint32_t metering;
    /// The rate of what the peer sends, in bits per second. If only `rate` is known, the peer is told that for both.
    uint64_t rate_back;
} hvq_hints;

/// Hints about the channel behind a local address. Paths that begin there have it.
typedef struct hvq_channel {
    /// The local address, with its port.
    hvq_address local;
    /// The hints.
    hvq_hints hints;
    /// The congestion controller of these paths by name; NULL for that of the connection.
    const char *congestion;
    /// The Differentiated Services codepoint of what is sent there, 0 to 63.
    uint32_t dscp;
    /// 0.
    uint32_t reserved;
} hvq_channel;

/// Limits and choices of connections, filled with their defaults by hvq_transport_config_init().
typedef struct hvq_transport_config {
    /// The size of this struct, as the caller was compiled. Set by the init function.
    size_t size;
    /// The scheduler by name: "hvc" (the default, for NULL), "min-rtt", "round-robin", "redundant", "single:N" and others.
    const char *scheduler;
    /// A scheduler of the program in place of a built-in one, or NULL. The table is copied; what its `user` points to is
    /// not.
    const hvq_scheduler *custom_scheduler;
    /// The congestion controller by name: "cubic" (the default, for NULL), "newreno", "bbr", "vegas", "copa", "vivace",
    /// the last three also for radios ("vegas-radio" and so on), "lia", "olia" and "balia".
    const char *congestion;
    /// Hints about channels, by local address.
    const hvq_channel *channels;
    /// The number of channels.
    size_t channel_count;
    /// A folder for qlog files, one for each connection, or NULL. A thread writes them.
    const char *qlog_folder;
    /// Called with what happens on connections, or NULL.
    hvq_log_callback log;
    /// Passed to `log`.
    void *log_user;
    /// HVQ_LOG_...: the amount of messages to `log`.
    uint32_t log_level;
    /// The maximum number of paths of a connection at a time; 1 offers the extension with one path, 0 does not offer
    /// it.
    uint32_t paths;
    /// The silence after which a connection ends (RFC 9000 §10.1), in nanoseconds; 0 for never.
    uint64_t idle_timeout;
    /// The longest time that a handshake may take, in nanoseconds; above 0.
    uint64_t handshake_timeout;
    /// The silence of the connection after which a PING is sent, in nanoseconds; 0 for none.
    uint64_t keep_alive;
    /// The silence of a path after which a PING is sent on it, in nanoseconds; 0 for none.
    uint64_t path_keep_alive;
    /// The time for which a path may be validated before the attempt fails, in nanoseconds; above 0.
    uint64_t validation_timeout;
    /// The initial flow control limit of the connection (RFC 9000 §18.2): the bytes that the peer may send ahead of
    /// reading, over all streams.
    uint64_t max_data;
    /// The initial flow control limit of each bidirectional stream that this end opens, in bytes.
    uint64_t stream_data_bidi_local;
    /// The initial flow control limit of each bidirectional stream that the peer opens, in bytes.
    uint64_t stream_data_bidi_remote;
    /// The initial flow control limit of each unidirectional stream, in bytes.
    uint64_t stream_data_uni;
    /// The maximum size to which these windows may grow, in bytes.
    uint64_t max_window;
    /// The maximum number of bidirectional streams that the peer may have open at a time.
    uint64_t max_streams_bidi;
    /// The maximum number of unidirectional streams that the peer may have open at a time.
    uint64_t max_streams_uni;
    /// The maximum number of bytes of a stream that wait for transmission or acknowledgement; beyond it writing blocks.
    /// Up to four times as many while they are less than twice the congestion windows of all paths.
    uint64_t send_buffer;
    /// The largest DATAGRAM frame accepted, in bytes; 0 refuses them.
    uint64_t max_datagram_frame;
    /// The maximum number of bytes of datagrams that wait for sending, and as many for the program.
    uint64_t datagram_queue;
    /// The size of UDP payloads sent, at least 1200, which the network must carry on all paths; 0 finds it out.
    uint32_t fixed_datagram_size;
    /// The largest size that is tried if it is found out.
    uint32_t max_datagram_size;
    /// The maximum number of UDP payloads of one batch, 1 to 64; 1 if the program cannot send several with one call.
    uint32_t segments;
    /// 1 marks packets as ECN-capable on paths that carry the marks; 0 for programs that cannot set or read them.
    uint32_t ecn;
    /// 1 varies what means nothing (RFC 9287 and others), 0 does not.
    uint32_t grease;
    /// 1 lets clients move their paths to other addresses, 0 asks them not to.
    uint32_t migration;
    /// The versions of QUIC that are spoken, the preferred one first: HVQ_QUIC_1 and HVQ_QUIC_2. NULL for both.
    const uint32_t *versions;
    /// The number of versions.
    size_t version_count;
    /// The version that a client begins with, one of `versions`; 0 for the first.
    uint32_t first_version;
    /// 1 has a server move connections to the first of its versions that the client speaks too (RFC 9368), 0 has it stay
    /// with what the client began with.
    uint32_t choose_version;
    /// A server's IPv4 address that clients shall move to after the handshake (RFC 9000 §9.6), where the program must receive
    /// too; zeros for none.
    hvq_address preferred_ipv4;
    /// A server's IPv6 address that clients shall move to after the handshake; zeros for none.
    hvq_address preferred_ipv6;
    /// 1 has a client move to the address that its server prefers, 0 has it stay.
    uint32_t follow_preferred;
    /// 1 lets the network measure round-trip times on most paths (RFC 9000 §17.4), 0 on none.
    uint32_t spin_bit;
    /// 1 has both ends tell how often they want acknowledgements, if the peer does so too; 0 has them follow the three
    /// `ack_` settings below.
    uint32_t ack_requests;
    /// Full datagrams that a client sends to open a path, so that the server may answer with more; 0 to 255.
    uint32_t opening_datagrams;
    /// The number of packets that ask for an acknowledgement after which one is sent at once.
    uint64_t ack_threshold;
    /// The longest time that an acknowledgement waits, in nanoseconds, below 2^14 milliseconds.
    uint64_t ack_delay;
    /// A packet out of order is acknowledged at once if the gap is so many packets old; 1 is every gap, 0 is none.
    uint64_t ack_reordering;
    /// Paths change the peer's connection ID that they use after so many packets; 0 for never.
    uint64_t rotation_packets;
    /// Paths change it after this time, too, in nanoseconds; 0 for never.
    uint64_t rotation_time;
    /// Paths change it with the first packet after this long a silence, too, in nanoseconds; 0 for never.
    uint64_t rotation_idle;
    /// The largest UDP payload that is accepted, in bytes, 1200 to 65527.
    uint64_t max_udp_payload;
    /// The maximum number of packets sealed with one key; the key is updated at half of that. 0 for the cipher suite's
    /// own limit, which is never exceeded (RFC 9001 §6.6).
    uint64_t aead_confidentiality;
    /// The number of packets that fail to authenticate after which the connection ends; 0 as above.
    uint64_t aead_integrity;
    /// 1 tells the peer the hints about paths that it takes (docs/spec/path-hints.md), and believes its own where there are no
    /// others; 0 does neither.
    uint32_t path_hints;
    /// The memory of paths that the endpoint keeps beyond a connection and begins later ones with (RFC 9959), in seconds; 0
    /// neither keeps nor uses any.
    uint32_t path_memory;
    /// The longest silence of a path after which a PING is sent on it, in nanoseconds, if a client may try longer ones than
    /// `path_keep_alive` until a NAT forgets the path; 0 keeps to `path_keep_alive`.
    uint64_t path_keep_alive_limit;
} hvq_transport_config;

/// Fills a configuration with the defaults. `size` is sizeof(hvq_transport_config).
///
/// Errors: HVQ_ERR_NULL, HVQ_ERR_ARGUMENT if `size` is no size that the struct ever had.
hvq_result hvq_transport_config_init(hvq_transport_config *config, size_t size);

/* ------------------------------------------------------------------------
 * Session tickets
 *
 * A server gives its clients tickets, with which a later connection resumes the session: the handshake is shorter, and with
 * 0-RTT a client sends data with its first datagram. A program that wants this keeps tickets in a store of its own, a table
 * of two functions, and names it in hvq_client_options. Servers need nothing but `early_data` for 0-RTT.
 *
 * Data in 0-RTT can be copied by an attacker and arrive twice (RFC 8446 §8): send only what does no harm twice, and have
 * servers ask hvq_stream_is_early() before they act upon anything else.
 * ------------------------------------------------------------------------ */

/// No 0-RTT, or the server has not decided yet.
#define HVQ_EARLY_UNUSED 0
/// A client sends it and does not know whether the server accepts it.
#define HVQ_EARLY_OFFERED 1
/// The server accepted it.
#define HVQ_EARLY_ACCEPTED 2
/// The server rejected it: the client sends everything again when the handshake is complete.
#define HVQ_EARLY_REJECTED 3

/// A client's store of tickets, as a table of functions. They are called within calls on endpoints, on their thread,
/// also of several threads if several endpoints use the table, and must not call the library for the same endpoint.
/// Tickets are as secret as the sessions are. The program has to bound how many it keeps.
typedef struct hvq_session_store {
    /// The size of this struct, as the caller was compiled: sizeof(hvq_session_store).
    size_t size;
    /// Passed to both functions; must be valid as long as connections of the configuration exist.
    void *user;
    /// Keeps a ticket of the server of this name, for connections that speak `protocol`. The bytes are valid during the call.
    void (*put)(void *user, const char *server_name, hvq_bytes protocol, hvq_bytes ticket);
    /// Takes the latest ticket of the server of this name whose protocol is one of these `count`: copies it to the room of
    /// `ticket`, sets its `length` and returns 1; or returns 0. There is room for 65536 bytes, and tickets have some 2000.
    /// A ticket should be used once, so that nobody can tell that two connections are of the same client.
    int32_t (*take)(void *user,
                    const char *server_name,
                    const hvq_bytes *protocols,
                    size_t count,
                    hvq_buffer *ticket);
} hvq_session_store;

/// Keeps a ticket of a connection whose configuration has an `ssl_ctx` of the program, as the library does without being
/// asked for its own contexts. The program calls it in the context's callback for new sessions, which BoringSSL calls if the
/// cache mode includes SSL_SESS_CACHE_CLIENT, and returns 0 from there, since the ticket is copied:
///
/// static int new_session(SSL *ssl, SSL_SESSION *session) {
///     uint32_t is_kept;
///     if (hvq_session_keep(ssl, session, &is_kept) != HVQ_OK || !is_kept)
///         keep_of_another_kind(ssl, session);
///     return 0;
/// }
///
/// `is_kept` becomes 1 if the `SSL` is of a connection of the library: the ticket goes to the store of its configuration, if
/// that has one, with what 0-RTT needs to know beside it; and 0 if not. Both pointers must be those that BoringSSL passed.
/// This function may be called in the middle of a call on the endpoint.
///
/// Errors: HVQ_ERR_NULL.
hvq_result hvq_session_keep(void *ssl,
                            void *session,
                            uint32_t *is_kept);

/* ------------------------------------------------------------------------
 * Admission
 *
 * A server decides about each client that asks for a connection before anything is spent on it: by `retry_from` of its
 * options alone, or by a callback, to which that is a proposal.
 * ------------------------------------------------------------------------ */

/// The handshake begins.
#define HVQ_ADMISSION_ACCEPT 0
/// The client has to prove its address first, which costs a round trip (RFC 9000 §8.1.2). One that did is accepted.
#define HVQ_ADMISSION_RETRY 1
/// The client is told that there will be no connection (CONNECTION_REFUSED).
#define HVQ_ADMISSION_REFUSE 2
/// The client gets no answer.
#define HVQ_ADMISSION_IGNORE 3

/// A client that asks for a connection.
typedef struct hvq_candidate {
    /// The addresses at which its first datagram arrived, and from which it came. Anybody can forge the latter unless
    /// `is_proven` is 1.
    hvq_route route;
    /// 1 if a token proves that the client receives at this address, 0 if nothing does.
    uint32_t is_proven;
    /// The version of QUIC that the client begins with.
    uint32_t version;
    /// Connections of the endpoint.
    uint64_t connections;
    /// The connections that peers started and whose handshake is not complete.
    uint64_t handshaking;
    /// HVQ_ADMISSION_...: what `retry_from` alone would say.
    uint32_t proposal;
    /// 0.
    uint32_t reserved;
} hvq_candidate;

/// Decides about a client: one of HVQ_ADMISSION_, and anything else counts as HVQ_ADMISSION_IGNORE. It is asked for every
/// datagram that belongs to no connection and could start one, within calls on the endpoint, on their thread; it must be
/// quick and not call the library for the same endpoint.
typedef uint32_t (*hvq_admission_callback)(void *user, const hvq_candidate *candidate);

/* ------------------------------------------------------------------------
 * TLS, and what connections are made from
 *
 * A client configuration serves any number of connections and endpoints, a server configuration any number of endpoints.
 * Both are not changed once they are made, may be used by several threads at a time, and may be freed as soon as no call
 * uses them: connections keep what they need.
 * ------------------------------------------------------------------------ */

/// The server is not who it says: the handshake fails with the alert certificate_unknown. A negative answer -N fails it
/// with the alert N, such as -42 for a bad certificate and -45 for one that expired.
#define HVQ_VERIFY_REFUSED 0
/// The server is who it says.
#define HVQ_VERIFY_TRUSTED 1
/// Not known yet: the handshake waits. The callback is called again when more arrives, and by
/// hvq_connection_verify_again().
#define HVQ_VERIFY_PENDING 2

/// The configuration of a client's connections.
typedef struct hvq_client_config hvq_client_config;

/// The configuration of a server's connections.
typedef struct hvq_server_config hvq_server_config;

/// Judges the certificates of a server: the name or address that the client asked for, and `count` certificates in DER, the
/// server's own first. Everything is valid during the call only. It answers one of HVQ_VERIFY_; it must check the name
/// too. It is called within calls on the endpoint, on their thread, and must not call the library for the same endpoint.
typedef int32_t (*hvq_verify_callback)(void *user,
                                       const char *server_name,
                                       const hvq_bytes *chain,
                                       size_t count);

/// Called with each line of a key log in the format of NSS, which tools such as Wireshark decrypt captures with: text
/// without a line break that ends with a zero byte and is valid during the call. Threads and calls as for other callbacks.
typedef void (*hvq_keylog_callback)(void *user, const char *line);

/// The options of a client configuration, filled with the defaults by hvq_client_options_init().
typedef struct hvq_client_options {
    /// The size of this struct, as the caller was compiled. Set by the init function.
    size_t size;
    /// Limits and choices of the connections; NULL for the defaults.
    const hvq_transport_config *transport;
    /// Application protocols to offer, the preferred one first, such as "h3". At least one is needed, unless `ssl_ctx` has
    /// some.
    const char *const *alpn;
    /// The number of protocols.
    size_t alpn_count;
    /// A PEM file with the certificates that servers' certificates must go back to. Without any of `ca_file`, `ca_pem`,
    /// `verify`, `ssl_ctx` and `insecure` the system's roots count.
    const char *ca_file;
    /// The same certificates as PEM in memory.
    hvq_bytes ca_pem;
    /// Judges certificates in place of the library.
    hvq_verify_callback verify;
    /// Passed to `verify`; must be valid as long as connections of this configuration exist.
    void *verify_user;
    /// 1 verifies nothing: whoever is on the network path can read and change everything. For tests.
    uint32_t insecure;
    /// With `ssl_ctx`: 1 has the library check that the certificate is for the server's name. Must be 0 for contexts of
    /// TLS_with_buffers_method and for those that check names themselves.
    uint32_t check_name;
    /// A BoringSSL SSL_CTX * of the program, in place of one that the library makes. It must be of the very BoringSSL that
    /// the library is linked with, which is so with libhvq-boringssl.a. A reference is taken; the context is not changed.
    /// Sessions are resumed if its callback for new sessions calls hvq_session_keep().
    void *ssl_ctx;
    /// Groups for the key exchange, such as "X25519:P-256"; NULL for BoringSSL's choice.
    const char *groups;
    /// Called with the secrets of connections, or NULL. Not with `ssl_ctx`.
    hvq_keylog_callback keylog;
    /// Passed to `keylog`.
    void *keylog_user;
    /// The store of tickets, by which connections resume earlier sessions; NULL for none. The table is copied, what its
    /// `user` points to is not. With `ssl_ctx` see hvq_session_keep().
    const hvq_session_store *sessions;
    /// 1 sends data in 0-RTT with tickets that permit it, 0 does not. Read the warning under Session tickets.
    uint32_t early_data;
    /// 0.
    uint32_t reserved;
    /// A token of an earlier connection to the same server (HVQ_EVENT_TOKEN), for endpoints that did not get it
    /// themselves; those of its own connections an endpoint keeps and uses without being told.
    hvq_bytes token;
    /// Cipher suites to offer, the preferred one first, by the numbers of TLS: 0x1301, 0x1302, 0x1303; NULL for all three.
    /// Not with `ssl_ctx`.
    const uint16_t *suites;
    /// The number of cipher suites.
    size_t suite_count;
} hvq_client_options;

/// The options of a server configuration, filled with the defaults by hvq_server_options_init().
typedef struct hvq_server_options {
    /// The size of this struct, as the caller was compiled. Set by the init function.
    size_t size;
    /// Limits and choices of the connections; NULL for the defaults.
    const hvq_transport_config *transport;
    /// Application protocols, the preferred one first. At least one is needed, unless there is an `ssl_ctx`.
    const char *const *alpn;
    /// The number of protocols.
    size_t alpn_count;
    /// A PEM file with the certificate chain, the server's own certificate first.
    const char *certificate_file;
    /// A PEM file with its private key.
    const char *key_file;
    /// In place of the files: the chain as PEM in memory.
    hvq_bytes certificate_pem;
    /// In place of the files: the key as PEM in memory.
    hvq_bytes key_pem;
    /// A BoringSSL SSL_CTX * of the program with certificate, key and a callback that selects the protocol; as for clients.
    void *ssl_ctx;
    /// Called with the secrets of connections, or NULL. Not with `ssl_ctx`.
    hvq_keylog_callback keylog;
    /// Passed to `keylog`.
    void *keylog_user;
    /// Clients prove their address first (a round trip) while so many handshakes are not complete: 0 always,
    /// UINT64_MAX never.
    uint64_t retry_from;
    /// Decides about each client that asks for a connection, or NULL (see Admission).
    hvq_admission_callback admission;
    /// Passed to `admission`.
    void *admission_user;
    /// 1 accepts data in 0-RTT, once with each ticket that the same endpoint issued; 0 refuses it. Read the warning under
    /// Session tickets. Not with `ssl_ctx`.
    uint32_t early_data;
    /// 0.
    uint32_t reserved;
    /// Bytes that stand for settings of the program that 0-RTT relies on: tickets issued under other bytes do not open
    /// 0-RTT. None for "hvq".
    hvq_bytes early_data_context;
    /// Cipher suites to accept, as for clients.
    const uint16_t *suites;
    /// The number of cipher suites.
    size_t suite_count;
} hvq_server_options;

/// Fills options with the defaults. `size` is sizeof(hvq_client_options).
///
/// Errors: HVQ_ERR_NULL, HVQ_ERR_ARGUMENT if `size` is no size that the struct ever had.
hvq_result hvq_client_options_init(hvq_client_options *options, size_t size);

/// Makes a client configuration, to be freed with hvq_client_config_free(). Files are read now.
///
/// Errors: HVQ_ERR_NULL, HVQ_ERR_ARGUMENT, HVQ_ERR_UNKNOWN_NAME for a scheduler or controller, HVQ_ERR_TLS,
/// HVQ_ERR_SYSTEM for the qlog folder. Nothing is written to `config` then.
hvq_result hvq_client_config_new(const hvq_client_options *options,
                                 hvq_client_config **config);

/// Frees a client configuration. NULL is ignored. With a `qlog_folder` it waits, for a second at most, until what was
/// recorded is in the files: who wants all of it frees endpoints first.
void hvq_client_config_free(hvq_client_config *config);

/// Fills options with the defaults. `size` is sizeof(hvq_server_options).
///
/// Errors: HVQ_ERR_NULL, HVQ_ERR_ARGUMENT if `size` is no size that the struct ever had.
hvq_result hvq_server_options_init(hvq_server_options *options, size_t size);

/// Makes a server configuration, to be freed with hvq_server_config_free(). Files are read now.
///
/// Errors: those of hvq_client_config_new().
hvq_result hvq_server_config_new(const hvq_server_options *options, hvq_server_config **config);

/// Frees a server configuration, as hvq_client_config_free() does. NULL is ignored.
void hvq_server_config_free(hvq_server_config *config);

/* ------------------------------------------------------------------------
 * Outputs of an endpoint that is polled
 * ------------------------------------------------------------------------ */

/// Nothing until something arrives or `deadline` passes.
#define HVQ_OUTPUT_IDLE 0
/// Send `transmit`.
#define HVQ_OUTPUT_TRANSMIT 1
/// Look at `event`.
#define HVQ_OUTPUT_EVENT 2

/// The handshake is complete: the peer is authenticated and data flows. The first event of a connection that a peer
/// started; it is how a server learns of it.
#define HVQ_EVENT_CONNECTED 1
/// The handshake is confirmed. A client may open more paths from here on; HVQ_EVENT_PATH_AVAILABLE tells when.
#define HVQ_EVENT_CONFIRMED 2
/// The connection ended: `closed` tells how, `code` with which code, and `bytes` why, for people. Nothing but
/// HVQ_EVENT_FORGOTTEN follows.
#define HVQ_EVENT_CLOSED 3
/// The connection's number is not known any more.
#define HVQ_EVENT_FORGOTTEN 4
/// The peer opened streams of `direction`: accept them until there are none.
#define HVQ_EVENT_STREAM_OPENED 5
/// Data, the end or a reset is there on `stream`: read until that blocks or ends.
#define HVQ_EVENT_STREAM_READABLE 6
/// There is room again on `stream`, after a write that blocked.
#define HVQ_EVENT_STREAM_WRITABLE 7
/// The peer has everything that was written to `stream`, the end included.
#define HVQ_EVENT_STREAM_FINISHED 8
/// The peer wants no more of `stream`, with `code` of its application.
#define HVQ_EVENT_STREAM_STOPPED 9
/// More streams of `direction` may be opened, after an attempt that failed.
#define HVQ_EVENT_STREAMS_AVAILABLE 10
/// Datagrams wait: receive them until there are none.
#define HVQ_EVENT_DATAGRAM 11
/// The peer opened `path`.
#define HVQ_EVENT_PATH_OPENED 12
/// The peer answered over `path`.
#define HVQ_EVENT_PATH_VALIDATED 13
/// Nothing came back over `path`; it is abandoned.
#define HVQ_EVENT_PATH_FAILED 14
/// `path` has moved to other addresses.
#define HVQ_EVENT_PATH_MIGRATED 15
/// `path` could not move, and is where it was.
#define HVQ_EVENT_PATH_MIGRATION_FAILED 16
/// `path` does not answer any more. Data in flight on it goes over others.
#define HVQ_EVENT_PATH_SILENT 17
/// `path` answers again.
#define HVQ_EVENT_PATH_ANSWERING 18
/// The peer advises HVQ_STATUS_... (`status`) for `path`.
#define HVQ_EVENT_PATH_STATUS 19
/// `path` was given up, by the peer or by command, with `code`.
#define HVQ_EVENT_PATH_ABANDONED 20
/// A client may open at least one more path now.
#define HVQ_EVENT_PATH_AVAILABLE 21
/// A server accepted 0-RTT: streams may be used before the handshake is complete. The first event of such a connection.
/// hvq_stream_is_early() tells what an attacker may have copied.
#define HVQ_EVENT_EARLY_DATA 22
/// The server gave a token (`bytes`) that spares a round trip when it is busy. The endpoint has it already; `token` of
/// hvq_client_options takes it to another endpoint.
#define HVQ_EVENT_TOKEN 23
/// The peer told or took back hints about `path`: hvq_path_get_peer_hints() has them.
#define HVQ_EVENT_PATH_HINTS 24

/// The program closed it.
#define HVQ_CLOSED_LOCALLY 1
/// This endpoint found a violation; `code` is a QUIC error code (RFC 9000 §20.1; TLS alert N is 0x100 + N).
#define HVQ_CLOSED_BY_ERROR 2
/// The peer found one; `code` is a QUIC error code.
#define HVQ_CLOSED_BY_PEER_ERROR 3
/// The peer's application closed it, with its own `code`.
#define HVQ_CLOSED_BY_PEER 4
/// Nothing arrived for the idle timeout.
#define HVQ_CLOSED_IDLE 5
/// The handshake did not finish in time.
#define HVQ_CLOSED_HANDSHAKE_TIMEOUT 6
/// The peer lost its state.
#define HVQ_CLOSED_RESET 7
/// The peer speaks no version of QUIC that the library speaks.
#define HVQ_CLOSED_VERSION 8

/// UDP payloads for the network: one, or several of equal size to one address.
typedef struct hvq_transmit {
    /// The address to send from, which names the socket, and the address to send to.
    hvq_route route;
    /// The payloads, back to back. Valid until the next poll of the endpoint.
    const uint8_t *bytes;
    /// Bytes of all payloads.
    size_t length;
    /// The size of each payload but the last if there are several (UDP_SEGMENT), else 0. There are several only if
    /// `segments` of the configuration is above 1.
    size_t segment;
    /// The ECN bits to set, if the configuration switches ECN on.
    uint32_t ecn;
    /// The Differentiated Services codepoint to set.
    uint32_t dscp;
} hvq_transmit;

/// Something happened on a connection. Fields that the kind does not name are 0.
typedef struct hvq_event {
    /// HVQ_EVENT_... Ignore kinds that you do not know: later versions have more.
    uint32_t kind;
    /// The number of the path.
    uint32_t path;
    /// The number of the connection.
    uint64_t connection;
    /// The number of the stream.
    uint64_t stream;
    /// A code of the peer or of the protocol.
    uint64_t code;
    /// HVQ_BIDIRECTIONAL or HVQ_UNIDIRECTIONAL.
    uint32_t direction;
    /// HVQ_STATUS_AVAILABLE or HVQ_STATUS_BACKUP.
    uint32_t status;
    /// HVQ_CLOSED_...
    uint32_t closed;
    /// 0.
    uint32_t reserved;
    /// A reason for people, in UTF-8 and without a zero byte at its end, or a token. Valid until the next poll of the endpoint.
    hvq_bytes bytes;
} hvq_event;

/// An output of an endpoint.
typedef struct hvq_output {
    /// HVQ_OUTPUT_...
    uint32_t kind;
    /// 0.
    uint32_t reserved;
    /// For HVQ_OUTPUT_IDLE: when to poll again at the latest; HVQ_NEVER for no such time. It may have passed already.
    uint64_t deadline;
    /// For HVQ_OUTPUT_TRANSMIT.
    hvq_transmit transmit;
    /// For HVQ_OUTPUT_EVENT.
    hvq_event event;
} hvq_output;

/* ------------------------------------------------------------------------
 * Endpoints
 *
 * An endpoint is many connections, of a client, a server or both. It does no I/O. The rule is: pass it datagrams
 * (hvq_endpoint_handle) and commands, then poll (hvq_endpoint_poll) until it is idle, sending what it says. Poll again
 * after the next datagram or command, and when the deadline that it named has passed.
 *
 * An endpoint may be used by any thread, by one at a time. A call while another one runs, or from a callback, fails with
 * HVQ_ERR_BUSY and does nothing.
 * ------------------------------------------------------------------------ */

/// The options of an endpoint, filled with the defaults by hvq_endpoint_options_init().
typedef struct hvq_endpoint_options {
    /// The size of this struct, as the caller was compiled. Set by the init function.
    size_t size;
    /// The configuration of connections that peers start; NULL accepts none.
    const hvq_server_config *server;
    /// 32 secret random bytes, used for this endpoint only; NULL takes them from the system. Equal seeds and equal calls
    /// give equal results.
    const uint8_t *seed;
    /// 32 secret bytes that a server keeps over a restart, so that clients of before learn at once that their connections
    /// are gone; NULL draws some.
    const uint8_t *reset_key;
    /// 32 secret bytes that servers share or keep to accept each other's address tokens; NULL draws some.
    const uint8_t *token_key;
    /// Nanoseconds since 1970 at the endpoint's time 0, for dates in tokens; 0 takes the system's time at creation.
    uint64_t epoch;
    /// The maximum number of connections whose handshake is complete.
    uint64_t max_connections;
    /// The maximum number of connections whose handshake is not complete, beside those.
    uint64_t max_handshaking;
    /// The length of the connection IDs that the endpoint issues, 4 to 20 bytes.
    uint32_t id_length;
    /// 0.
    uint32_t reserved;
    /// The maximum number of stateless resets sent in a second (RFC 9000 §10.3.3); 0 sends none.
    uint32_t resets_per_second;
    /// The maximum number of Version Negotiation packets sent in a second (RFC 9000 §6.1); 0 sends none.
    uint32_t negotiations_per_second;
} hvq_endpoint_options;

/// A datagram from the network, or several of equal size from one address to another, back to back.
typedef struct hvq_incoming {
    /// The address that it arrived at, and the one that it came from.
    hvq_route route;
    /// Its UDP payload.
    const uint8_t *bytes;
    /// Bytes of the payload.
    size_t length;
    /// The size of each datagram but the last if there are several (UDP_GRO), else 0.
    size_t segment;
    /// Its ECN bits: the two low bits of the traffic class, 0 if not known.
    uint32_t ecn;
    /// 0.
    uint32_t reserved;
} hvq_incoming;

/// The options of a connection that a client starts.
typedef struct hvq_connect_options {
    /// The configuration.
    const hvq_client_config *config;
    /// The name that the server's certificate must be for: a host name, or an IP address.
    const char *server_name;
    /// The addresses of path 0. The local address is that of a socket, not 0.0.0.0: what arrives must be passed with
    /// the same.
    hvq_route route;
} hvq_connect_options;

/// A network path on which a connection could begin.
typedef struct hvq_network_path {
    /// Its addresses.
    hvq_route route;
    /// Hints about its channel.
    hvq_hints hints;
} hvq_network_path;

/// Fills options with the defaults. `size` is sizeof(hvq_endpoint_options).
///
/// Errors: HVQ_ERR_NULL, HVQ_ERR_ARGUMENT if `size` is no size that the struct ever had.
hvq_result hvq_endpoint_options_init(hvq_endpoint_options *options, size_t size);

/// Makes an endpoint, to be freed with hvq_endpoint_free(). `options` may be NULL for the defaults: a client.
///
/// Errors: HVQ_ERR_NULL, HVQ_ERR_ARGUMENT, HVQ_ERR_SYSTEM without random numbers. Nothing is written to `endpoint` then.
hvq_result hvq_endpoint_new(const hvq_endpoint_options *options,
                            hvq_endpoint **endpoint);

/// Frees an endpoint with all of its connections; peers are not told. NULL is ignored. Callbacks may be called a last time.
///
/// Errors: HVQ_ERR_BUSY if it is in use; it is not freed then.
hvq_result hvq_endpoint_free(hvq_endpoint *endpoint);

/// Replaces what new connections of peers are made from; NULL accepts no more. Existing connections go on.
///
/// Errors: HVQ_ERR_NULL, HVQ_ERR_BUSY.
hvq_result hvq_endpoint_set_server(hvq_endpoint *endpoint, const hvq_server_config *server);

/// Takes in what arrived from the network at time `now`. The bytes are copied. Datagrams that make no sense are
/// ignored, so that only mistakes of the caller are errors: HVQ_ERR_NULL, HVQ_ERR_ARGUMENT, HVQ_ERR_BUSY.
hvq_result hvq_endpoint_handle(hvq_endpoint *endpoint,
                               const hvq_incoming *incoming,
                               uint64_t now);

/// Tells that the system refused to send a UDP payload of `size` bytes over `route` as too large for the interface
/// (EMSGSIZE). It is sent again in smaller ones.
///
/// Errors: HVQ_ERR_NULL, HVQ_ERR_ARGUMENT, HVQ_ERR_BUSY.
hvq_result hvq_endpoint_refused(hvq_endpoint *endpoint,
                                const hvq_route *route,
                                size_t size,
                                uint64_t now);

/// Starts a connection at time `now` and writes its number, which is never used twice by the endpoint.
/// HVQ_EVENT_CONNECTED or HVQ_EVENT_CLOSED follows.
///
/// Errors: HVQ_ERR_NULL, HVQ_ERR_ARGUMENT, HVQ_ERR_TLS for a name that is none, HVQ_ERR_LIMIT, HVQ_ERR_BUSY.
hvq_result hvq_endpoint_connect(hvq_endpoint *endpoint,
                                const hvq_connect_options *options,
                                uint64_t now,
                                uint64_t *connection);

/// Says over which of `count` network paths a connection with `config` had better begin, and writes its index: what the scheduler
/// chooses from the hints and from what all connections of the endpoint saw of these channels. It is 0 while nothing tells of
/// the delay of some path, and with schedulers that leave the choice to the program. Paths beyond the 64th are not
/// looked at. Nothing is started: hvq_endpoint_connect() does that.
///
/// Errors: HVQ_ERR_NULL, HVQ_ERR_ARGUMENT, also if `count` is 0, HVQ_ERR_BUSY.
hvq_result hvq_endpoint_first_network_path(hvq_endpoint *endpoint,
                                           const hvq_client_config *config,
                                           const hvq_network_path *ways,
                                           size_t count,
                                           uint64_t now,
                                           size_t *index);

/// Says what is to be done at time `now`: send a batch, look at an event, or wait. To be called until it says
/// HVQ_OUTPUT_IDLE, after every other call that changes something. Bytes that the output points to are valid until the
/// next poll of this endpoint, or until it is freed.
///
/// Errors: HVQ_ERR_NULL, HVQ_ERR_BUSY.
hvq_result hvq_endpoint_poll(hvq_endpoint *endpoint,
                             uint64_t now,
                             hvq_output *output);

/// Writes the numbers of all connections, closing ones included, in no order: at most `capacity` of them to
/// `connections`, and how many there are to `count`.
///
/// Errors: HVQ_ERR_NULL, HVQ_ERR_BUSY, HVQ_ERR_TOO_SMALL if `capacity` is less than `count`.
hvq_result hvq_endpoint_connections(hvq_endpoint *endpoint,
                                    uint64_t *connections,
                                    size_t capacity,
                                    size_t *count);

/* ------------------------------------------------------------------------
 * Connections
 *
 * A connection is named by the number that hvq_endpoint_connect() wrote or that came with HVQ_EVENT_CONNECTED. Numbers
 * of connections that are gone are answered with HVQ_ERR_UNKNOWN_CONNECTION, by every function that takes one.
 * ------------------------------------------------------------------------ */

/// Keys are being agreed on.
#define HVQ_STATE_HANDSHAKING 0
/// The handshake is complete.
#define HVQ_STATE_CONNECTED 1
/// The handshake is confirmed: the peer is known to have completed it too.
#define HVQ_STATE_CONFIRMED 2
/// This end closed, and says so to what still arrives.
#define HVQ_STATE_CLOSING 3
/// The peer closed.
#define HVQ_STATE_DRAINING 4
/// Nothing is left to do; the connection is forgotten with the next poll.
#define HVQ_STATE_CLOSED 5

/// A snapshot of a connection.
typedef struct hvq_connection_info {
    /// HVQ_STATE_...
    uint32_t state;
    /// 1 if this end is the server.
    uint32_t is_server;
    /// 1 if several paths were negotiated.
    uint32_t is_multipath;
    /// Open paths.
    uint32_t paths;
    /// Packets ignored.
    uint64_t packets_dropped;
    /// Bytes of the largest datagram that can be sent now, 0 if the peer accepts none.
    uint64_t max_datagram_size;
    /// The addresses of the open path with the smallest number; zeros if there is none.
    hvq_route route;
    /// The version of QUIC in use. It may change until the handshake is complete.
    uint32_t version;
    /// 1 if the handshake resumed an earlier session, once it is complete.
    uint32_t is_resumed;
    /// HVQ_EARLY_...: what became of 0-RTT.
    uint32_t early_data;
    /// 1 while a client sends or a server takes data before the handshake is complete.
    uint32_t is_early_data;
    /// The number of key updates, by either side.
    uint64_t key_updates;
    /// Addresses of the peer, on all paths, that are being validated.
    uint64_t pending_validations;
    /// Datagrams of this end that were dropped because the queue was full.
    uint64_t datagrams_displaced;
    /// Datagrams of this end that were dropped because their deadline had passed.
    uint64_t datagrams_expired;
    /// Datagrams of this end that were refused or dropped because no path carries one so large.
    uint64_t datagrams_too_large;
} hvq_connection_info;

/// The transport parameters of the peer, as it said in the handshake (RFC 9000 §18.2). Limits are those at the
/// beginning; times are in nanoseconds.
typedef struct hvq_peer {
    /// Silence after which it ends the connection; 0 for never.
    uint64_t idle_timeout;
    /// The largest UDP payload that it accepts, in bytes.
    uint64_t max_udp_payload;
    /// Bytes on all streams together.
    uint64_t max_data;
    /// Bytes on each bidirectional stream that it opens.
    uint64_t stream_data_bidi_local;
    /// Bytes on each bidirectional stream that this end opens.
    uint64_t stream_data_bidi_remote;
    /// Bytes on each unidirectional stream.
    uint64_t stream_data_uni;
    /// Bidirectional streams that this end may open.
    uint64_t max_streams_bidi;
    /// Unidirectional streams that this end may open.
    uint64_t max_streams_uni;
    /// The largest DATAGRAM frame that it accepts, in bytes; 0 for none.
    uint64_t max_datagram_frame;
    /// The longest time by which it delays acknowledgements.
    uint64_t ack_delay;
    /// The least delay of acknowledgements that it can keep; 0 if it cannot be asked.
    uint64_t least_ack_delay;
    /// Connection IDs that it keeps, for each path.
    uint64_t connection_ids;
    /// Paths that it permits at first; 0 if it does not know the multipath extension.
    uint32_t paths;
    /// 1 if clients may move to other addresses.
    uint32_t migration;
} hvq_peer;

/// Writes a snapshot of a connection.
///
/// Errors: HVQ_ERR_NULL, HVQ_ERR_BUSY, HVQ_ERR_UNKNOWN_CONNECTION.
hvq_result hvq_connection_get_info(hvq_endpoint *endpoint,
                                   uint64_t connection,
                                   hvq_connection_info *info);

/// Writes what the peer said in the handshake.
///
/// Errors: HVQ_ERR_NULL, HVQ_ERR_BUSY, HVQ_ERR_UNKNOWN_CONNECTION, HVQ_ERR_NONE before the handshake is complete.
hvq_result hvq_connection_get_peer(hvq_endpoint *endpoint,
                                   uint64_t connection,
                                   hvq_peer *peer);

/// Closes a connection with a code of the application and a reason for people, which may be NULL. Unsent data is
/// dropped. HVQ_EVENT_CLOSED follows, and HVQ_EVENT_FORGOTTEN after a while; closing again does nothing.
///
/// Errors: HVQ_ERR_NULL, HVQ_ERR_BUSY, HVQ_ERR_UNKNOWN_CONNECTION.
hvq_result hvq_connection_close(hvq_endpoint *endpoint,
                                uint64_t connection,
                                uint64_t code,
                                const char *reason,
                                uint64_t now);

/// Has a verify callback that answered HVQ_VERIFY_PENDING asked again. Does nothing if none waits.
///
/// Errors: HVQ_ERR_NULL, HVQ_ERR_BUSY, HVQ_ERR_UNKNOWN_CONNECTION.
hvq_result hvq_connection_verify_again(hvq_endpoint *endpoint, uint64_t connection, uint64_t now);

/// Has the keys of a connection updated (RFC 9001 §6), which happens by itself before they wear out.
///
/// Errors: HVQ_ERR_NULL, HVQ_ERR_BUSY, HVQ_ERR_UNKNOWN_CONNECTION, HVQ_ERR_NOT_CONNECTED if it is not possible now.
hvq_result hvq_connection_update_keys(hvq_endpoint *endpoint,
                                      uint64_t connection,
                                      uint64_t now);

/// The application protocol that was agreed on, in the form of hvq_connection_server_name().
///
/// Errors: those of hvq_connection_server_name().
hvq_result hvq_connection_alpn(hvq_endpoint *endpoint, uint64_t connection, char *buffer, size_t capacity);

/// The name that the client asked for, as text with a zero byte into `buffer`. 256 bytes are always enough.
///
/// Errors: HVQ_ERR_NULL, HVQ_ERR_BUSY, HVQ_ERR_UNKNOWN_CONNECTION, HVQ_ERR_NONE if it is not known or there is none,
/// HVQ_ERR_TOO_SMALL; what fits was written then.
hvq_result hvq_connection_server_name(hvq_endpoint *endpoint,
                                      uint64_t connection,
                                      char *buffer,
                                      size_t capacity);

/// Copies certificate number `index` of the peer's chain, its own being number 0, in DER into the room of `buffer`.
///
/// Errors: HVQ_ERR_NULL, HVQ_ERR_BUSY, HVQ_ERR_UNKNOWN_CONNECTION, HVQ_ERR_NONE beyond the last; with
/// HVQ_ERR_TOO_SMALL only `length` of `buffer` was written.
hvq_result hvq_connection_certificate(hvq_endpoint *endpoint,
                                      uint64_t connection,
                                      size_t index,
                                      hvq_buffer *buffer);

/* ------------------------------------------------------------------------
 * Streams
 *
 * A stream is named by its connection and its number, which both ends share (RFC 9000 §2.1). Streams that do not exist or
 * are over are answered with HVQ_ERR_UNKNOWN_STREAM.
 * ------------------------------------------------------------------------ */

/// Both ends send.
#define HVQ_BIDIRECTIONAL 0

/// Only the end that opened the stream sends.
#define HVQ_UNIDIRECTIONAL 1

/// A stream of a connection.
typedef struct hvq_stream {
    /// The number of the connection.
    uint64_t connection;
    /// The number of the stream.
    uint64_t id;
} hvq_stream;

/// Bytes of the program that the library may keep.
typedef struct hvq_owned {
    /// The bytes, which must not change until `release` is called.
    hvq_bytes bytes;
    /// Called exactly once, when the library needs the bytes no more; it must not call the library for the same endpoint.
    void (*release)(void *user);
    /// Passed to `release`.
    void *user;
} hvq_owned;

/// Opens a stream and writes its number.
///
/// Errors: HVQ_ERR_NULL, HVQ_ERR_ARGUMENT, HVQ_ERR_BUSY, HVQ_ERR_UNKNOWN_CONNECTION, HVQ_ERR_BLOCKED if the peer
/// permits no more now; HVQ_EVENT_STREAMS_AVAILABLE follows.
hvq_result hvq_stream_open(hvq_endpoint *endpoint,
                           uint64_t connection,
                           uint32_t direction_number,
                           hvq_stream *stream);

/// Writes the next stream that the peer opened.
///
/// Errors: HVQ_ERR_NULL, HVQ_ERR_ARGUMENT, HVQ_ERR_BUSY, HVQ_ERR_UNKNOWN_CONNECTION, HVQ_ERR_NONE if there is none
/// now; HVQ_EVENT_STREAM_OPENED follows.
hvq_result hvq_stream_accept(hvq_endpoint *endpoint,
                             uint64_t connection,
                             uint32_t direction_number,
                             hvq_stream *stream);

/// Appends a copy of the first bytes of `data` that there is room for, and writes how many: at least one, unless `length`
/// is 0.
///
/// Errors: HVQ_ERR_NULL, HVQ_ERR_BUSY, HVQ_ERR_UNKNOWN_CONNECTION, HVQ_ERR_UNKNOWN_STREAM, HVQ_ERR_FINISHED,
/// HVQ_ERR_STOPPED; HVQ_ERR_BLOCKED if there is no room, HVQ_EVENT_STREAM_WRITABLE follows.
hvq_result hvq_stream_write(hvq_endpoint *endpoint,
                            hvq_stream stream,
                            const void *data,
                            size_t length,
                            size_t *written);

/// Writes like hvq_stream_write(), without a copy if the bytes are many: the library keeps them until the peer has
/// them. `release` is called once in any case, also for a call that fails; what was not taken is to be written again,
/// in a new hvq_owned.
///
/// Errors: those of hvq_stream_write().
hvq_result hvq_stream_write_owned(hvq_endpoint *endpoint,
                                  hvq_stream stream,
                                  const hvq_owned *owned,
                                  size_t *written);

/// Marks what was written so far as the end of a message, which is of use only if it arrives by `deadline`
/// (HVQ_NEVER for no such time). Schedulers place the parts of a message by when the whole is there.
///
/// Errors: HVQ_ERR_NULL, HVQ_ERR_BUSY, HVQ_ERR_UNKNOWN_CONNECTION, HVQ_ERR_UNKNOWN_STREAM, HVQ_ERR_FINISHED,
/// HVQ_ERR_STOPPED.
hvq_result hvq_stream_end_message(hvq_endpoint *endpoint,
                                  hvq_stream stream,
                                  uint64_t deadline);

/// Ends the sending direction behind what was written.
///
/// Errors: those of hvq_stream_end_message().
hvq_result hvq_stream_finish(hvq_endpoint *endpoint, hvq_stream stream);

/// Gives up the sending direction with a code of the application. Unsent data is dropped.
///
/// Errors: those of hvq_stream_end_message(), and HVQ_ERR_ARGUMENT for a code above 2^62 - 1.
hvq_result hvq_stream_reset(hvq_endpoint *endpoint, hvq_stream stream, uint64_t code);

/// Asks the peer to send no more, with a code of the application. Data that has arrived is dropped.
///
/// Errors: HVQ_ERR_NULL, HVQ_ERR_BUSY, HVQ_ERR_UNKNOWN_CONNECTION, HVQ_ERR_UNKNOWN_STREAM, HVQ_ERR_RESET,
/// HVQ_ERR_STOPPED if it was stopped before, HVQ_ERR_ARGUMENT for a code above 2^62 - 1.
hvq_result hvq_stream_stop(hvq_endpoint *endpoint,
                           hvq_stream stream,
                           uint64_t code);

/// Sets the priority of what this end sends on a stream (RFC 9218): `urgency` from 0, the most urgent, to 7; 3 is the
/// default. `incremental` is 1 if a part is of use before the whole has arrived. Unknown streams are ignored.
///
/// Errors: HVQ_ERR_NULL, HVQ_ERR_BUSY, HVQ_ERR_UNKNOWN_CONNECTION, HVQ_ERR_ARGUMENT.
hvq_result hvq_stream_set_priority(hvq_endpoint *endpoint,
                                   hvq_stream stream,
                                   uint32_t urgency,
                                   uint32_t incremental);

/// Copies at most `capacity` bytes that arrived into `buffer`, and writes how many: at least one, unless `capacity` is 0.
/// More may be there: read until it fails.
///
/// Errors: HVQ_ERR_NULL, HVQ_ERR_BUSY, HVQ_ERR_UNKNOWN_CONNECTION, HVQ_ERR_UNKNOWN_STREAM, HVQ_ERR_RESET,
/// HVQ_ERR_STOPPED; HVQ_ERR_END behind the last byte; HVQ_ERR_BLOCKED if nothing is there,
/// HVQ_EVENT_STREAM_READABLE follows. After an end or a reset the stream may be unknown.
hvq_result hvq_stream_read(hvq_endpoint *endpoint,
                           hvq_stream stream,
                           void *buffer,
                           size_t capacity,
                           size_t *count);

/// Reads like hvq_stream_read(), without a copy: `chunk` names at most `most` bytes that arrived, which are valid until
/// the next call of this function for the same endpoint, or until that is freed.
///
/// Errors: those of hvq_stream_read().
hvq_result hvq_stream_read_chunk(hvq_endpoint *endpoint,
                                 hvq_stream stream,
                                 size_t most,
                                 hvq_bytes *chunk);

/// Writes 1 to `is_early` if a part of what was received on a stream came in 0-RTT, and may be a copy that an attacker sends;
/// else 0, also for unknown streams.
///
/// Errors: HVQ_ERR_NULL, HVQ_ERR_BUSY, HVQ_ERR_UNKNOWN_CONNECTION.
hvq_result hvq_stream_is_early(hvq_endpoint *endpoint,
                               hvq_stream stream,
                               uint32_t *is_early);

/* ------------------------------------------------------------------------
 * Datagrams (RFC 9221): short messages that arrive once, late, or never
 * ------------------------------------------------------------------------ */

/// A datagram to send.
typedef struct hvq_datagram {
    /// Its bytes, which are copied.
    hvq_bytes bytes;
    /// It is dropped if it is not sent by then; HVQ_NEVER for no such time.
    uint64_t deadline;
    /// 0 (most urgent) to 7; 3 is the default.
    uint32_t urgency;
    /// 0.
    uint32_t reserved;
} hvq_datagram;

/// Queues a datagram.
///
/// Errors: HVQ_ERR_NULL, HVQ_ERR_ARGUMENT, HVQ_ERR_BUSY, HVQ_ERR_UNKNOWN_CONNECTION, HVQ_ERR_NOT_NEGOTIATED if the
/// peer accepts none, HVQ_ERR_TOO_LARGE if it is larger than `max_datagram_size` of hvq_connection_info.
hvq_result hvq_datagram_send(hvq_endpoint *endpoint,
                             uint64_t connection,
                             const hvq_datagram *datagram);

/// Copies the next datagram that arrived into the room of `buffer`. 65535 bytes are always enough; a datagram that does
/// not fit is lost.
///
/// Errors: HVQ_ERR_NULL, HVQ_ERR_BUSY, HVQ_ERR_UNKNOWN_CONNECTION, HVQ_ERR_TOO_SMALL, HVQ_ERR_NONE if there is none;
/// HVQ_EVENT_DATAGRAM follows.
hvq_result hvq_datagram_receive(hvq_endpoint *endpoint,
                                uint64_t connection,
                                hvq_buffer *buffer);

/* ------------------------------------------------------------------------
 * Paths (RFC 10069)
 *
 * A connection begins on path 0. A client opens more, each over a route of its own; all of them carry data of the same
 * connection. A path is named by its connection and its number, which is never used twice.
 * ------------------------------------------------------------------------ */

/// The path may be used.
#define HVQ_STATUS_AVAILABLE 0
/// The path should only be used when no available one is left.
#define HVQ_STATUS_BACKUP 1

/// The new addresses are used once the server has answered there, and the old ones until then.
#define HVQ_MOVE_VALIDATED 0
/// The new addresses are used now, because the old ones are gone.
#define HVQ_MOVE_AT_ONCE 1

/// A path of a connection.
typedef struct hvq_path {
    /// The number of the connection.
    uint64_t connection;
    /// The number of the path.
    uint32_t id;
    /// 0.
    uint32_t reserved;
} hvq_path;

/// A snapshot of a path. Times are in nanoseconds, sizes in bytes.
typedef struct hvq_path_statistics {
    /// The number of the path.
    uint32_t id;
    /// HVQ_STANDING_...
    uint32_t standing;
    /// Its addresses.
    hvq_route route;
    /// The smoothed round-trip time.
    uint64_t rtt;
    /// The smallest round-trip time.
    uint64_t min_rtt;
    /// The estimated one-way delay to the peer.
    uint64_t delay;
    /// The congestion window.
    uint64_t window;
    /// Bytes in flight.
    uint64_t in_flight;
    /// The rate of the bottleneck in bits per second, hinted or estimated; 0 if not known.
    uint64_t rate;
    /// The size of datagrams sent.
    uint64_t datagram_size;
    /// Datagrams sent since the path was opened.
    uint64_t datagrams_sent;
    /// Bytes of UDP payload sent.
    uint64_t bytes_sent;
    /// Packets received.
    uint64_t packets_received;
    /// Bytes of packets received.
    uint64_t bytes_received;
    /// Packets acknowledged.
    uint64_t packets_acknowledged;
    /// Packets declared lost.
    uint64_t packets_lost;
    /// Packets of these that were acknowledged later.
    uint64_t spurious_losses;
    /// Packets that arrived at the peer with the mark of congestion.
    uint64_t packets_marked;
    /// Probe timeouts.
    uint64_t probe_timeouts;
    /// The name of the congestion controller.
    char congestion[16];
} hvq_path_statistics;

/// Opens a path at time `now` and writes its number. Data flows on it at once; HVQ_EVENT_PATH_VALIDATED or
/// HVQ_EVENT_PATH_FAILED follows.
///
/// Errors: HVQ_ERR_NULL, HVQ_ERR_ARGUMENT, HVQ_ERR_BUSY, HVQ_ERR_UNKNOWN_CONNECTION, HVQ_ERR_NOT_CLIENT,
/// HVQ_ERR_NOT_CONNECTED, HVQ_ERR_NOT_NEGOTIATED, HVQ_ERR_FORBIDDEN; HVQ_ERR_LIMIT and HVQ_ERR_NO_CONNECTION_ID, after
/// which HVQ_EVENT_PATH_AVAILABLE may tell when to try again.
hvq_result hvq_path_open(hvq_endpoint *endpoint,
                         uint64_t connection,
                         const hvq_route *route,
                         uint64_t now,
                         hvq_path *path);

/// Gives up a path with a code (RFC 10069 §4.2) at time `now`. Data in flight on it goes over others.
///
/// Errors: HVQ_ERR_NULL, HVQ_ERR_BUSY, HVQ_ERR_UNKNOWN_CONNECTION, HVQ_ERR_UNKNOWN_PATH, HVQ_ERR_NOT_NEGOTIATED,
/// HVQ_ERR_LAST_PATH, HVQ_ERR_ARGUMENT for a code above 2^62 - 1.
hvq_result hvq_path_abandon(hvq_endpoint *endpoint,
                            hvq_path path,
                            uint64_t code,
                            uint64_t now);

/// Moves a path to another route at time `now`: `moving` is HVQ_MOVE_VALIDATED or HVQ_MOVE_AT_ONCE.
/// HVQ_EVENT_PATH_MIGRATED or HVQ_EVENT_PATH_MIGRATION_FAILED follows.
///
/// Errors: HVQ_ERR_NULL, HVQ_ERR_ARGUMENT, also if it is there already, HVQ_ERR_BUSY, HVQ_ERR_UNKNOWN_CONNECTION,
/// HVQ_ERR_UNKNOWN_PATH, HVQ_ERR_NOT_CLIENT, HVQ_ERR_NOT_CONNECTED, HVQ_ERR_FORBIDDEN, HVQ_ERR_NO_CONNECTION_ID.
hvq_result hvq_path_migrate(hvq_endpoint *endpoint,
                            hvq_path path,
                            const hvq_route *route,
                            uint32_t moving,
                            uint64_t now);

/// Tells the peer whether it should use a path: HVQ_STATUS_AVAILABLE or HVQ_STATUS_BACKUP.
///
/// Errors: HVQ_ERR_NULL, HVQ_ERR_ARGUMENT, HVQ_ERR_BUSY, HVQ_ERR_UNKNOWN_CONNECTION, HVQ_ERR_UNKNOWN_PATH,
/// HVQ_ERR_NOT_NEGOTIATED.
hvq_result hvq_path_set_status(hvq_endpoint *endpoint,
                               hvq_path path,
                               uint32_t status);

/// Says what is known about the channel of a path. This replaces what was said before. The peer is told, if both ends
/// exchange hints (`path_hints` of hvq_transport_config).
///
/// Errors: HVQ_ERR_NULL, HVQ_ERR_ARGUMENT, HVQ_ERR_BUSY, HVQ_ERR_UNKNOWN_CONNECTION, HVQ_ERR_UNKNOWN_PATH.
hvq_result hvq_path_set_hints(hvq_endpoint *endpoint,
                              hvq_path path,
                              const hvq_hints *hints);

/// Writes what the peer told of the channel of a path, as this end sees it: `rate` is that of what this end sends. All
/// zeros if it told nothing.
///
/// Errors: HVQ_ERR_NULL, HVQ_ERR_BUSY, HVQ_ERR_UNKNOWN_CONNECTION, HVQ_ERR_UNKNOWN_PATH.
hvq_result hvq_path_get_peer_hints(hvq_endpoint *endpoint,
                                   hvq_path path,
                                   hvq_hints *hints);

/// Puts a path under another congestion controller, by name, which begins in its initial state.
///
/// Errors: HVQ_ERR_NULL, HVQ_ERR_BUSY, HVQ_ERR_UNKNOWN_CONNECTION, HVQ_ERR_UNKNOWN_PATH, HVQ_ERR_UNKNOWN_NAME.
hvq_result hvq_path_set_congestion(hvq_endpoint *endpoint,
                                   hvq_path path,
                                   const char *name);

/// Has a PING sent on a path after `period` nanoseconds of silence; 0 lets it fall silent.
///
/// Errors: HVQ_ERR_NULL, HVQ_ERR_BUSY, HVQ_ERR_UNKNOWN_CONNECTION, HVQ_ERR_UNKNOWN_PATH.
hvq_result hvq_path_set_keep_alive(hvq_endpoint *endpoint, hvq_path path, uint64_t period);

/// Marks the packets of a path with a Differentiated Services codepoint, 0 to 63, from here on.
///
/// Errors: HVQ_ERR_NULL, HVQ_ERR_ARGUMENT, HVQ_ERR_BUSY, HVQ_ERR_UNKNOWN_CONNECTION, HVQ_ERR_UNKNOWN_PATH.
hvq_result hvq_path_set_dscp(hvq_endpoint *endpoint,
                             hvq_path path,
                             uint32_t codepoint);

/// Uses another connection ID of the peer on a path from here on, and retires the one before (RFC 9000 §5.1.2), at time `now`.
///
/// Errors: HVQ_ERR_NULL, HVQ_ERR_BUSY, HVQ_ERR_UNKNOWN_CONNECTION, HVQ_ERR_UNKNOWN_PATH, HVQ_ERR_NO_CONNECTION_ID.
hvq_result hvq_path_rotate_connection_id(hvq_endpoint *endpoint,
                                         hvq_path path,
                                         uint64_t now);

/// Asks the peer to retire the connection IDs of this end on a path, for new ones: from then on what arrives shows others.
/// Asking again before it has done so changes nothing.
///
/// Errors: HVQ_ERR_NULL, HVQ_ERR_BUSY, HVQ_ERR_UNKNOWN_CONNECTION, HVQ_ERR_UNKNOWN_PATH; HVQ_ERR_NO_CONNECTION_ID if
/// there are none to ask for.
hvq_result hvq_path_retire_connection_ids(hvq_endpoint *endpoint,
                                          hvq_path path);

/// Writes a snapshot of each open path: at most `capacity` of them to `statistics`, and how many there are to `count`.
///
/// Errors: HVQ_ERR_NULL, HVQ_ERR_BUSY, HVQ_ERR_UNKNOWN_CONNECTION, HVQ_ERR_TOO_SMALL if `capacity` is less than `count`.
hvq_result hvq_path_list(hvq_endpoint *endpoint,
                         uint64_t connection,
                         hvq_path_statistics *statistics,
                         size_t capacity,
                         size_t *count);

/// Writes a snapshot of one path.
///
/// Errors: HVQ_ERR_NULL, HVQ_ERR_BUSY, HVQ_ERR_UNKNOWN_CONNECTION, HVQ_ERR_UNKNOWN_PATH.
hvq_result hvq_path_get_statistics(hvq_endpoint *endpoint,
                                   hvq_path path,
                                   hvq_path_statistics *statistics);

/* ------------------------------------------------------------------------
 * Counters
 *
 * Endpoints and connections count more than what is counted for each path (hvq_path_list).
 * ------------------------------------------------------------------------ */

/// Counters of an endpoint: datagrams that it ignored, and that it sent without a connection.
typedef struct hvq_endpoint_statistics {
    /// Connections that exist, closing ones included.
    uint64_t connections;
    /// Datagrams that no connection took, for whatever reason.
    uint64_t datagrams_dropped;
    /// Version Negotiation packets sent.
    uint64_t version_negotiations;
    /// Retry packets sent.
    uint64_t retries;
    /// Stateless resets sent.
    uint64_t stateless_resets;
    /// Connections refused without state for them.
    uint64_t refusals;
    /// Connections of peers that began with a token that proves the address.
    uint64_t proven_addresses;
} hvq_endpoint_statistics;

/// Datagrams that no connection took for one reason.
typedef struct hvq_dropped {
    /// The reason, for people.
    char reason[64];
    /// The number of times.
    uint64_t count;
} hvq_dropped;

/// Frames of one kind on one path.
typedef struct hvq_frame_counter {
    /// The number of the path.
    uint32_t path;
    /// 0.
    uint32_t reserved;
    /// The frame's name in RFC 9000, RFC 9221 or RFC 10069, such as "stream".
    char kind[32];
    /// Frames sent.
    uint64_t sent;
    /// Bytes of the frames sent.
    uint64_t sent_bytes;
    /// Frames received.
    uint64_t received;
} hvq_frame_counter;

/// Writes the counters of an endpoint.
///
/// Errors: HVQ_ERR_NULL, HVQ_ERR_BUSY.
hvq_result hvq_endpoint_get_statistics(hvq_endpoint *endpoint, hvq_endpoint_statistics *statistics);

/// Writes the reasons for which datagrams were ignored, in no order: at most `capacity` of them to `dropped`, and how many
/// there are to `count`. 32 are always enough.
///
/// Errors: HVQ_ERR_NULL, HVQ_ERR_BUSY, HVQ_ERR_TOO_SMALL if `capacity` is less than `count`.
hvq_result hvq_endpoint_list_dropped(hvq_endpoint *endpoint,
                                     hvq_dropped *dropped,
                                     size_t capacity,
                                     size_t *count);

/// Writes counters of frames by path and kind, in no order: at most `capacity` of them to `counters`, and how many there are
/// to `count`. The latest sixteen closed paths are included.
///
/// Errors: HVQ_ERR_NULL, HVQ_ERR_BUSY, HVQ_ERR_UNKNOWN_CONNECTION, HVQ_ERR_TOO_SMALL if `capacity` is less than `count`.
hvq_result hvq_connection_list_frames(hvq_endpoint *endpoint,
                                      uint64_t connection,
                                      hvq_frame_counter *counters,
                                      size_t capacity,
                                      size_t *count);

/* ------------------------------------------------------------------------
 * Schedulers of your own
 *
 * For each frame that is about to be written the transport asks the scheduler of the connection which path carries it.
 * The built-in ones are chosen by name in hvq_transport_config; this is how to bring one of your own.
 * ------------------------------------------------------------------------ */

/// ACK or PATH_ACK: acknowledges packets of `acknowledged_path`.
#define HVQ_CONTENT_ACKNOWLEDGEMENT 0
/// CRYPTO: the TLS handshake.
#define HVQ_CONTENT_HANDSHAKE 1
/// Every other frame that is not data.
#define HVQ_CONTENT_CONTROL 2
/// STREAM: the only content that can be divided.
#define HVQ_CONTENT_STREAM 3
/// DATAGRAM.
#define HVQ_CONTENT_DATAGRAM 4

/// Never sent before.
#define HVQ_HISTORY_FRESH 0
/// Sent on `earlier_path`, and lost.
#define HVQ_HISTORY_LOST 1
/// Sent on `earlier_path` `age` ago, neither acknowledged nor lost, and suspected to be late: a copy is offered.
#define HVQ_HISTORY_UNACKNOWLEDGED 2

/// The path is validated, and the peer has not asked to spare it.
#define HVQ_STANDING_AVAILABLE 0
/// The path is validated, and the peer asked to use it only when no other is left.
#define HVQ_STANDING_BACKUP 1
/// The validation of the path is under way.
#define HVQ_STANDING_UNVALIDATED 2
/// The path has not answered for a probe timeout.
#define HVQ_STANDING_SILENT 3

/// Nothing goes until some path changes, or, if `wait` is not 0, for that many nanoseconds at most.
#define HVQ_PLACE_WAIT 0
/// The first `bytes` of the item go on `path`, and the rest is offered again.
#define HVQ_PLACE_ON 1
/// A copy goes on each path of the mask `set`.
#define HVQ_PLACE_ON_EACH 2

/// A frame was written into a packet.
#define HVQ_OBSERVED_PLACED 0
/// The packet with the frame was acknowledged.
#define HVQ_OBSERVED_ACKNOWLEDGED 1
/// The packet with the frame was declared lost.
#define HVQ_OBSERVED_LOST 2
/// The path will not be listed again.
#define HVQ_OBSERVED_PATH_GONE 3

/// One frame that is to be placed.
typedef struct hvq_item {
    /// HVQ_CONTENT_...
    uint32_t content;
    /// The path whose packets an acknowledgement acknowledges.
    uint32_t acknowledged_path;
    /// The number of a stream.
    uint64_t stream;
    /// Its size in bytes if sent whole; at least 1.
    uint64_t bytes;
    /// 0 (most urgent) to 7 (background), RFC 9218.
    uint8_t urgency;
    /// 1 if a part is of use before the whole has arrived, else 0.
    uint8_t incremental;
    /// 1 if this end is the server, 0 if it is the client.
    uint8_t is_server;
    /// 1 if `message_remaining` and `message_deadline` mean something.
    uint8_t has_message;
    /// HVQ_HISTORY_...
    uint32_t history;
    /// Bytes left in the message of the application from here on.
    uint64_t message_remaining;
    /// From now until the message is late, in nanoseconds; HVQ_NEVER if it cannot be.
    uint64_t message_deadline;
    /// Bytes of the same stream that wait to be sent, this item's included.
    uint64_t pending;
    /// The number of bytes of fresh data that the peer's connection limit still admits.
    uint64_t credit;
    /// Nanoseconds from now until all that the receiver needs before this is expected to be there.
    uint64_t waits_for;
    /// Nanoseconds since it was sent, if HVQ_HISTORY_UNACKNOWLEDGED.
    uint64_t age;
    /// Now, in nanoseconds since the connection began.
    uint64_t now;
    /// The path that it was sent on before, unless HVQ_HISTORY_FRESH.
    uint32_t earlier_path;
    /// 0.
    uint32_t reserved;
} hvq_item;

/// One path as a scheduler may know it.
typedef struct hvq_path_view {
    /// The number of the path.
    uint32_t id;
    /// HVQ_STANDING_...
    uint32_t standing;
    /// Bytes that it may send now; 0 means none now.
    uint64_t room;
    /// Nanoseconds until room is expected again; 0 if there is room.
    uint64_t resumes;
    /// The congestion window in bytes.
    uint64_t window;
    /// Bytes in flight.
    uint64_t in_flight;
    /// The one-way delay to the peer in nanoseconds. Only differences between paths need to be right.
    uint64_t delay;
    /// The rate of the bottleneck in bits per second; 0 if not known.
    uint64_t rate;
    /// Bytes believed queued at that bottleneck.
    uint64_t backlog;
    /// The latest round-trip time in nanoseconds; 0 before the first, as are those that follow.
    uint64_t rtt_latest;
    /// The smoothed round-trip time in nanoseconds.
    uint64_t rtt_smoothed;
    /// The mean deviation of round-trip times in nanoseconds.
    uint64_t rtt_variance;
    /// The smallest round-trip time in nanoseconds.
    uint64_t rtt_minimum;
    /// The share of packets lost of late, in thousandths.
    uint32_t loss;
    /// The largest UDP payload that the path carries, in bytes.
    uint32_t datagram_size;
    /// Hints about the channel.
    hvq_hints hints;
} hvq_path_view;

/// The answer of a scheduler. It is filled with HVQ_PLACE_WAIT when the scheduler is asked.
typedef struct hvq_placement {
    /// HVQ_PLACE_... Anything else counts as HVQ_PLACE_WAIT.
    uint32_t kind;
    /// The number of the path, for HVQ_PLACE_ON. A path that is not listed or has no room counts as HVQ_PLACE_WAIT.
    uint32_t path;
    /// The number of bytes of the item, for HVQ_PLACE_ON: from 1 to its size. Items other than stream data always go
    /// whole.
    uint64_t bytes;
    /// Nanoseconds, for HVQ_PLACE_WAIT.
    uint64_t wait;
    /// Bit i stands for the path listed at index i, for HVQ_PLACE_ON_EACH.
    uint64_t set;
} hvq_placement;

/// The outcome of an earlier answer.
typedef struct hvq_observation {
    /// HVQ_OBSERVED_...
    uint32_t kind;
    /// The path.
    uint32_t path;
    /// HVQ_CONTENT_... of the frame.
    uint32_t content;
    /// The path whose packets an acknowledgement acknowledges.
    uint32_t acknowledged_path;
    /// The number of a stream.
    uint64_t stream;
    /// The size of the frame as written.
    uint64_t bytes;
    /// Nanoseconds from sending to the outcome.
    uint64_t delay;
} hvq_observation;

/// Bytes that a handshake sends on the path on which it begins.
typedef struct hvq_flights {
    /// The bytes of the client, until it has keys.
    uint64_t sent;
    /// The bytes of the server: mostly its certificates.
    uint64_t received;
} hvq_flights;

/// A scheduler as a table of functions. They are called within calls on the endpoint, on their thread, and must not call
/// the library for the same endpoint (HVQ_ERR_BUSY), nor unwind nor jump out.
///
/// `user` is passed to `create`, once for each connection, and what that returns to the other functions. Functions other
/// than `place` may be NULL; without `create` all connections share `user`, which must then stand calls from several
/// threads if several endpoints use the table. `user` must be valid until the configurations made with the table and the
/// endpoints that use them are freed.
typedef struct hvq_scheduler {
    /// The size of this struct, as the caller was compiled: sizeof(hvq_scheduler).
    size_t size;
    /// Passed to `create`.
    void *user;
    /// Makes the state of a connection's scheduler.
    void *(*create)(void *user);
    /// Frees it, when the connection ends.
    void (*destroy)(void *state);
    /// Says in `placement` where `item` goes. There are `count` paths, 1 to 64; each is listed once.
    void (*place)(void *state,
                  const hvq_item *item,
                  const hvq_path_view *paths,
                  size_t count,
                  hvq_placement *placement);
    /// Learns what became of earlier answers.
    void (*observe)(void *state, const hvq_observation *observation);
    /// Returns the number of further pieces of the stream, each of the size of `item`, which was just placed whole on
    /// `path`, that may follow it there without a question for each. NULL asks for each.
    size_t (*repeats)(void *state, const hvq_item *item, const hvq_path_view *path);
    /// Returns the index of the one of `count` paths, none of which is open, over which a connection had better begin:
    /// hvq_endpoint_first_network_path() asks it, of a state that is created and destroyed for that. Delays and queues are what
    /// other connections of the endpoint saw and hints say. NULL, and an index that is none, stand for 0.
    size_t (*first)(void *state,
                    const hvq_flights *flights,
                    const hvq_path_view *paths,
                    size_t count);
} hvq_scheduler;

#ifdef __cplusplus
}
#endif

#endif /* HVQ_H */
