/*
 * A stream of small requests over two paths, each after the answer to the one before, with plain poll(2).
 *
 *     requests CA POLICY MILLISECONDS LOCAL REMOTE LOCAL REMOTE
 *
 * The server is the one of the example echo. Prints when each answer came, in microseconds since the first: whoever pulls
 * cables meanwhile sees how long requests stood still.
 */
#include "net.h"

#define REQUEST 100
#define PAUSE UINT64_C(20000000)

static const char *const protocols[] = { "echo" };

typedef struct client {
    hvq_endpoint *endpoint;
    uint64_t connection;
    hvq_route second;
    hvq_stream stream;
    size_t received;
    uint64_t first, next; /* The time of the first answer, and of the next request. */
    int connected, asking, closed;
} client;

/* Sends a request on a stream of its own. */
static void ask(client *self)
{
    static const unsigned char request[REQUEST] = {0};
    size_t count;

    if (hvq_stream_open(self->endpoint, self->connection, HVQ_BIDIRECTIONAL, &self->stream) != HVQ_OK)
        return;
    CHECK(hvq_stream_write(self->endpoint, self->stream, request, sizeof request, &count));
    CHECK(hvq_stream_finish(self->endpoint, self->stream));
    self->asking = 1;
    self->received = 0;
}

/* Reads what came, and notes the answer when it is whole. */
static void read_answer(client *self)
{
    unsigned char buffer[4096];
    uint64_t now;
    size_t count;
    hvq_result result;

    while ((result = hvq_stream_read(self->endpoint, self->stream, buffer, sizeof buffer, &count)) == HVQ_OK)
        self->received += count;
    if (result != HVQ_ERR_END)
        return;
    if (self->received != REQUEST) {
        fprintf(stderr, "an answer of %zu bytes\n", self->received);
        exit(1);
    }
    now = net_now();
    if (self->first == 0)
        self->first = now;
    printf("%llu\n", (unsigned long long)((now - self->first) / 1000));
    fflush(stdout);
    self->asking = 0;
    self->next = now + PAUSE;
}

static void on_event(client *self, const hvq_event *event)
{
    hvq_path path;

    switch (event->kind) {
    case HVQ_EVENT_CONNECTED:
        self->connected = 1;
        break;
    case HVQ_EVENT_PATH_AVAILABLE:
        if (self->second.remote.family != 0) {
            CHECK(hvq_path_open(self->endpoint, event->connection, &self->second, net_now(), &path));
            self->second.remote.family = 0;
        }
        break;
    case HVQ_EVENT_STREAM_READABLE:
        read_answer(self);
        break;
    case HVQ_EVENT_CLOSED:
        fprintf(stderr, "closed: %.*s\n", (int)event->bytes.length, (const char *)event->bytes.data);
        self->closed = 1;
        break;
    default:
        break;
    }
}

/* Handles all that is to be done now; returns when it has to be called again. */
static uint64_t go_on(client *self, net *sockets)
{
    hvq_output output;

    for (;;) {
        if (self->connected && !self->asking && !self->closed && net_now() >= self->next)
            ask(self);
        CHECK(hvq_endpoint_poll(self->endpoint, net_now(), &output));
        if (output.kind == HVQ_OUTPUT_TRANSMIT)
            net_send(sockets, self->endpoint, &output.transmit);
        else if (output.kind == HVQ_OUTPUT_EVENT)
            on_event(self, &output.event);
        else
            break;
    }
    if (self->connected && !self->asking && self->next < output.deadline)
        return self->next;
    return output.deadline;
}

static void connect_to(client *self, net *sockets, char **arguments)
{
    hvq_transport_config transport;
    hvq_client_options options;
    hvq_connect_options connect;
    hvq_client_config *config;

    memset(&connect, 0, sizeof connect);
    CHECK(hvq_transport_config_init(&transport, sizeof transport));
    transport.scheduler = arguments[1];
    CHECK(hvq_client_options_init(&options, sizeof options));
    options.transport = &transport;
    options.alpn = protocols;
    options.alpn_count = 1;
    options.ca_file = arguments[0];
    CHECK(hvq_client_config_new(&options, &config));
    CHECK(hvq_endpoint_new(NULL, &self->endpoint));
    connect.config = config;
    connect.server_name = "localhost";
    connect.route.local = sockets->addresses[net_bind(sockets, arguments[3])];
    CHECK(hvq_address_parse(arguments[4], &connect.route.remote));
    self->second.local = sockets->addresses[net_bind(sockets, arguments[5])];
    CHECK(hvq_address_parse(arguments[6], &self->second.remote));
    CHECK(hvq_endpoint_connect(self->endpoint, &connect, net_now(), &self->connection));
    hvq_client_config_free(config);
}

int main(int count, char **arguments)
{
    client self;
    net sockets;
    uint64_t length;

    if (count != 8) {
        fprintf(stderr, "usage: requests CA POLICY MILLISECONDS LOCAL REMOTE LOCAL REMOTE\n");
        return 2;
    }
    memset(&sockets, 0, sizeof sockets);
    memset(&self, 0, sizeof self);
    length = strtoull(arguments[3], NULL, 10) * UINT64_C(1000000);
    connect_to(&self, &sockets, arguments + 1);
    while (!self.closed && (self.first == 0 || net_now() < self.first + length)) {
        uint64_t deadline = go_on(&self, &sockets);
        if (self.first != 0 && self.first + length < deadline)
            deadline = self.first + length;
        if (!self.closed) {
            net_wait(&sockets, deadline, -1);
            net_receive(&sockets, self.endpoint);
        }
    }
    CHECK(hvq_endpoint_free(self.endpoint));
    net_close(&sockets);
    return self.first == 0;
}
