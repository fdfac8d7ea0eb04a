/*
 * Echo over two paths, with plain poll(2).
 *
 *     echo server CERTIFICATE KEY ADDRESS...       sends back what arrives on each stream
 *     echo client CA LOCAL REMOTE LOCAL REMOTE     sends a message from each LOCAL to each REMOTE, over one connection
 */
#include "net.h"

#include <signal.h>

#define MESSAGES 20
#define MESSAGE 50000

static const char *const protocols[] = { "echo" };
static volatile sig_atomic_t stopped;

static void on_signal(int number)
{
    (void)number;
    stopped = 1;
}

/* A stream of the server, with what was read and not yet sent back. */
typedef struct echo {
    hvq_stream stream;
    struct echo *next;
    size_t length, offset;
    int ended;
    unsigned char bytes[16384];
} echo;

/* Goes on with a stream until it blocks. Returns whether it is over. */
static int echo_on(hvq_endpoint *endpoint, echo *one)
{
    for (;;) {
        hvq_result result;
        size_t count;
        while (one->offset < one->length) {
            result = hvq_stream_write(endpoint, one->stream, one->bytes + one->offset, one->length - one->offset, &count);
            if (result != HVQ_OK)
                return result != HVQ_ERR_BLOCKED;
            one->offset += count;
        }
        if (one->ended)
            return hvq_stream_finish(endpoint, one->stream) <= HVQ_OK;
        result = hvq_stream_read(endpoint, one->stream, one->bytes, sizeof one->bytes, &count);
        if (result == HVQ_ERR_END)
            one->ended = 1;
        else if (result != HVQ_OK)
            return result != HVQ_ERR_BLOCKED;
        one->offset = 0;
        one->length = result == HVQ_OK ? count : 0;
        if (result == HVQ_OK)
            hvq_stream_end_message(endpoint, one->stream, HVQ_NEVER);
    }
}

/* Takes the streams that a peer opened. */
static void accept_all(hvq_endpoint *endpoint, uint64_t connection, echo **all)
{
    hvq_stream stream;
    while (hvq_stream_accept(endpoint, connection, HVQ_BIDIRECTIONAL, &stream) == HVQ_OK) {
        echo *one = (echo *)calloc(1, sizeof *one);
        if (!one)
            exit(1);
        one->stream = stream;
        one->next = *all;
        *all = one;
    }
}

static void serve_event(hvq_endpoint *endpoint, const hvq_event *event, echo **all)
{
    echo **place = all;
    if (event->kind == HVQ_EVENT_STREAM_OPENED && event->direction == HVQ_BIDIRECTIONAL)
        accept_all(endpoint, event->connection, all);
    while (*place) {
        echo *one = *place;
        int mine = one->stream.connection == event->connection;
        int over = mine && (event->kind == HVQ_EVENT_CLOSED || echo_on(endpoint, one));
        if (over) {
            *place = one->next;
            free(one);
        } else {
            place = &one->next;
        }
    }
}

static int serve(int count, char **arguments)
{
    hvq_transport_config transport;
    hvq_server_options options;
    hvq_endpoint_options endpoint_options;
    hvq_server_config *config;
    hvq_endpoint *endpoint;
    echo *all = NULL;
    net sockets;
    int index;

    memset(&sockets, 0, sizeof sockets);
    /* A client that asks a person about the certificate is waited for. */
    CHECK(hvq_transport_config_init(&transport, sizeof transport));
    transport.handshake_timeout = 60 * UINT64_C(1000000000);
    CHECK(hvq_server_options_init(&options, sizeof options));
    options.transport = &transport;
    options.alpn = protocols;
    options.alpn_count = 1;
    options.certificate_file = arguments[0];
    options.key_file = arguments[1];
    CHECK(hvq_server_config_new(&options, &config));
    CHECK(hvq_endpoint_options_init(&endpoint_options, sizeof endpoint_options));
    endpoint_options.server = config;
    CHECK(hvq_endpoint_new(&endpoint_options, &endpoint));
    hvq_server_config_free(config);

    for (index = 2; index < count; index++) {
        char text[64];
        CHECK(hvq_address_format(&sockets.addresses[net_bind(&sockets, arguments[index])], text, sizeof text));
        printf("listening on %s\n", text);
    }
    fflush(stdout);
    signal(SIGTERM, on_signal);
    signal(SIGINT, on_signal);

    while (!stopped) {
        hvq_output output;
        for (;;) {
            CHECK(hvq_endpoint_poll(endpoint, net_now(), &output));
            if (output.kind == HVQ_OUTPUT_TRANSMIT)
                net_send(&sockets, endpoint, &output.transmit);
            else if (output.kind == HVQ_OUTPUT_EVENT)
                serve_event(endpoint, &output.event, &all);
            else
                break;
        }
        net_wait(&sockets, output.deadline, -1);
        net_receive(&sockets, endpoint);
    }
    while (all) {
        echo *next = all->next;
        free(all);
        all = next;
    }
    CHECK(hvq_endpoint_free(endpoint));
    net_close(&sockets);
    return 0;
}

typedef struct client {
    hvq_endpoint *endpoint;
    hvq_route second;
    hvq_stream stream;
    size_t sent, received;
    int open, closed, validated;
} client;

/* Writes messages until the stream blocks, and ends it behind the last. */
static void send_messages(client *self)
{
    static unsigned char message[MESSAGE];
    while (self->open && self->sent < MESSAGES * MESSAGE) {
        size_t count, offset = self->sent % MESSAGE;
        hvq_result result =
            hvq_stream_write(self->endpoint, self->stream, message + offset, MESSAGE - offset, &count);
        if (result == HVQ_ERR_BLOCKED)
            return;
        CHECK(result);
        self->sent += count;
        if (self->sent % MESSAGE == 0)
            CHECK(hvq_stream_end_message(self->endpoint, self->stream, net_now() + 1000000000u));
        if (self->sent == MESSAGES * MESSAGE)
            CHECK(hvq_stream_finish(self->endpoint, self->stream));
    }
}

static void show_paths(client *self)
{
    hvq_path_statistics paths[4];
    size_t count, index;
    uint64_t both = 1;
    CHECK(hvq_path_list(self->endpoint, self->stream.connection, paths, 4, &count));
    for (index = 0; index < count; index++) {
        char address[64];
        CHECK(hvq_address_format(&paths[index].route.remote, address, sizeof address));
        printf("path %u to %s: %llu bytes sent, %llu received, round trip %llu us\n", paths[index].id, address,
               (unsigned long long)paths[index].bytes_sent, (unsigned long long)paths[index].bytes_received,
               (unsigned long long)(paths[index].rtt / 1000));
        both = both && paths[index].bytes_sent > 0 && paths[index].bytes_received > 0;
    }
    printf("echoed %zu bytes over %zu paths, both used: %s\n", self->received, count, both ? "yes" : "no");
}

static void client_event(client *self, const hvq_event *event)
{
    unsigned char buffer[16384];
    size_t count;
    hvq_path path;
    hvq_result result;

    switch (event->kind) {
    case HVQ_EVENT_PATH_AVAILABLE:
        if (self->second.remote.family != 0) {
            CHECK(hvq_path_open(self->endpoint, event->connection, &self->second, net_now(), &path));
            printf("opened path %u\n", path.id);
            self->second.remote.family = 0;
        }
        break;
    case HVQ_EVENT_PATH_VALIDATED:
        if (event->path == 0)
            break;
        printf("path %u is validated\n", event->path);
        CHECK(hvq_stream_open(self->endpoint, event->connection, HVQ_BIDIRECTIONAL, &self->stream));
        CHECK(hvq_stream_set_priority(self->endpoint, self->stream, 1, 0));
        self->open = 1;
        send_messages(self);
        break;
    case HVQ_EVENT_STREAM_WRITABLE:
        send_messages(self);
        break;
    case HVQ_EVENT_STREAM_READABLE:
        while ((result = hvq_stream_read(self->endpoint, self->stream, buffer, sizeof buffer, &count)) == HVQ_OK)
            self->received += count;
        if (result == HVQ_ERR_END) {
            show_paths(self);
            CHECK(hvq_connection_close(self->endpoint, event->connection, 0, "done", net_now()));
        }
        break;
    case HVQ_EVENT_CLOSED:
        printf("closed: %.*s\n", (int)event->bytes.length, (const char *)event->bytes.data);
        self->closed = 1;
        break;
    default:
        break;
    }
}

static int ask(char **arguments)
{
    hvq_transport_config transport;
    hvq_client_options options;
    hvq_connect_options connect;
    hvq_client_config *config;
    uint64_t connection;
    client self;
    net sockets;

    memset(&sockets, 0, sizeof sockets);
    memset(&self, 0, sizeof self);
    memset(&connect, 0, sizeof connect);
    CHECK(hvq_transport_config_init(&transport, sizeof transport));
    transport.scheduler = "round-robin";
    CHECK(hvq_client_options_init(&options, sizeof options));
    options.transport = &transport;
    options.alpn = protocols;
    options.alpn_count = 1;
    options.ca_file = arguments[0];
    CHECK(hvq_client_config_new(&options, &config));
    CHECK(hvq_endpoint_new(NULL, &self.endpoint));

    connect.config = config;
    connect.server_name = "localhost";
    connect.route.local = sockets.addresses[net_bind(&sockets, arguments[1])];
    CHECK(hvq_address_parse(arguments[2], &connect.route.remote));
    self.second.local = sockets.addresses[net_bind(&sockets, arguments[3])];
    CHECK(hvq_address_parse(arguments[4], &self.second.remote));
    CHECK(hvq_endpoint_connect(self.endpoint, &connect, net_now(), &connection));
    hvq_client_config_free(config);

    while (!self.closed) {
        hvq_output output;
        for (;;) {
            CHECK(hvq_endpoint_poll(self.endpoint, net_now(), &output));
            if (output.kind == HVQ_OUTPUT_TRANSMIT)
                net_send(&sockets, self.endpoint, &output.transmit);
            else if (output.kind == HVQ_OUTPUT_EVENT)
                client_event(&self, &output.event);
            else
                break;
        }
        if (!self.closed) {
            net_wait(&sockets, output.deadline, -1);
            net_receive(&sockets, self.endpoint);
        }
    }
    CHECK(hvq_endpoint_free(self.endpoint));
    net_close(&sockets);
    return self.received == MESSAGES * MESSAGE ? 0 : 1;
}

int main(int count, char **arguments)
{
    if (count >= 5 && strcmp(arguments[1], "server") == 0)
        return serve(count - 2, arguments + 2);
    if (count == 7 && strcmp(arguments[1], "client") == 0)
        return ask(arguments + 2);
    fprintf(stderr, "usage: echo server CERTIFICATE KEY ADDRESS...\n"
                    "       echo client CA LOCAL REMOTE LOCAL REMOTE\n");
    return 2;
}
