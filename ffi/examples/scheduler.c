/*
 * A scheduler in C, and both ends of a connection in one program without a socket: the network is an array, and time
 * passes as the program says.
 *
 *     scheduler CERTIFICATE KEY
 *
 * The scheduler keeps data on path 0 and everything else on path 1, as far as they have room.
 */
#include <hvq.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(call) check((call), #call)
#define BYTES 2000000
#define STEP 1000000u /* a millisecond each way */
#define MOST 4096

static void check(hvq_result result, const char *call)
{
    char text[256];
    if (result == HVQ_OK)
        return;
    hvq_last_error(text, sizeof text);
    fprintf(stderr, "%s: %s: %s\n", call, hvq_error_name(result), text);
    exit(1);
}

/* What the schedulers of all connections count. */
typedef struct counts {
    unsigned long connections, data[2], others[2], acknowledged, lost;
} counts;

static void *create(void *user)
{
    ((counts *)user)->connections++;
    return user;
}

static void place(void *state, const hvq_item *item, const hvq_path_view *paths, size_t count,
                  hvq_placement *placement)
{
    uint32_t wanted = item->content == HVQ_CONTENT_STREAM ? 0 : 1;
    size_t index;
    (void)state;
    for (index = 0; index < count; index++) {
        int free_to_send = paths[index].room > 0 || item->content == HVQ_CONTENT_ACKNOWLEDGEMENT;
        if ((paths[index].id == wanted || count == 1) && free_to_send) {
            placement->kind = HVQ_PLACE_ON;
            placement->path = paths[index].id;
            placement->bytes = item->bytes;
            return;
        }
    }
    /* The answer is to wait until the path has room. */
}

static void observe(void *state, const hvq_observation *observation)
{
    counts *all = (counts *)state;
    if (observation->kind == HVQ_OBSERVED_PLACED && observation->path < 2)
        (observation->content == HVQ_CONTENT_STREAM ? all->data : all->others)[observation->path]++;
    all->acknowledged += observation->kind == HVQ_OBSERVED_ACKNOWLEDGED;
    all->lost += observation->kind == HVQ_OBSERVED_LOST;
}

/* A datagram under way. */
typedef struct packet {
    uint64_t arrives;
    hvq_route route;
    size_t length;
    unsigned char bytes[1500];
} packet;

typedef struct end {
    hvq_endpoint *endpoint;
    packet *queue; /* towards this end */
    size_t first, count;
    uint64_t connection, received;
    int connected, may_open;
} end;

static void deliver(end *to, uint64_t now)
{
    while (to->count > 0 && to->queue[to->first].arrives <= now) {
        packet *one = &to->queue[to->first];
        hvq_incoming incoming;
        memset(&incoming, 0, sizeof incoming);
        incoming.route.local = one->route.remote;
        incoming.route.remote = one->route.local;
        incoming.bytes = one->bytes;
        incoming.length = one->length;
        CHECK(hvq_endpoint_handle(to->endpoint, &incoming, now));
        to->first = (to->first + 1) % MOST;
        to->count--;
    }
}

static void take(end *self, const hvq_event *event)
{
    hvq_stream stream;
    hvq_bytes chunk;
    if (event->kind == HVQ_EVENT_CONNECTED) {
        self->connected = 1;
        self->connection = event->connection;
    } else if (event->kind == HVQ_EVENT_PATH_AVAILABLE) {
        self->may_open = 1;
    } else if (event->kind == HVQ_EVENT_STREAM_OPENED) {
        while (hvq_stream_accept(self->endpoint, event->connection, HVQ_UNIDIRECTIONAL, &stream) == HVQ_OK)
            ;
    } else if (event->kind == HVQ_EVENT_STREAM_READABLE) {
        stream.connection = event->connection;
        stream.id = event->stream;
        while (hvq_stream_read_chunk(self->endpoint, stream, 1 << 20, &chunk) == HVQ_OK)
            self->received += chunk.length;
    }
}

/* Polls one end until it is idle. */
static void run(end *self, end *peer, uint64_t now)
{
    hvq_output output;
    for (;;) {
        CHECK(hvq_endpoint_poll(self->endpoint, now, &output));
        if (output.kind == HVQ_OUTPUT_IDLE)
            return;
        if (output.kind == HVQ_OUTPUT_EVENT) {
            take(self, &output.event);
        } else if (peer->count < MOST && output.transmit.length <= sizeof peer->queue->bytes) {
            packet *one = &peer->queue[(peer->first + peer->count++) % MOST];
            one->arrives = now + STEP;
            one->route = output.transmit.route;
            one->length = output.transmit.length;
            memcpy(one->bytes, output.transmit.bytes, output.transmit.length);
        }
    }
}

static hvq_route route(unsigned path)
{
    char text[64];
    hvq_route made;
    snprintf(text, sizeof text, "192.0.2.1:%u", 1000 + path);
    CHECK(hvq_address_parse(text, &made.local));
    snprintf(text, sizeof text, "198.51.100.1:%u", 2000 + path);
    CHECK(hvq_address_parse(text, &made.remote));
    return made;
}

static void set_up(end *client, end *server, counts *all, char **files)
{
    static const char *const protocols[] = { "example" };
    hvq_scheduler scheduler;
    hvq_transport_config transport;
    hvq_client_options client_options;
    hvq_server_options server_options;
    hvq_endpoint_options options;
    hvq_client_config *client_config;
    hvq_server_config *server_config;
    hvq_connect_options connect;

    memset(&scheduler, 0, sizeof scheduler);
    scheduler.size = sizeof scheduler;
    scheduler.user = all;
    scheduler.create = create;
    scheduler.place = place;
    scheduler.observe = observe;
    CHECK(hvq_transport_config_init(&transport, sizeof transport));
    transport.custom_scheduler = &scheduler;

    CHECK(hvq_server_options_init(&server_options, sizeof server_options));
    server_options.transport = &transport;
    server_options.alpn = protocols;
    server_options.alpn_count = 1;
    server_options.certificate_file = files[0];
    server_options.key_file = files[1];
    CHECK(hvq_server_config_new(&server_options, &server_config));
    CHECK(hvq_endpoint_options_init(&options, sizeof options));
    options.server = server_config;
    CHECK(hvq_endpoint_new(&options, &server->endpoint));
    hvq_server_config_free(server_config);

    CHECK(hvq_client_options_init(&client_options, sizeof client_options));
    client_options.transport = &transport;
    client_options.alpn = protocols;
    client_options.alpn_count = 1;
    client_options.ca_file = files[0];
    CHECK(hvq_client_config_new(&client_options, &client_config));
    CHECK(hvq_endpoint_new(NULL, &client->endpoint));
    memset(&connect, 0, sizeof connect);
    connect.config = client_config;
    connect.server_name = "localhost";
    connect.route = route(0);
    CHECK(hvq_endpoint_connect(client->endpoint, &connect, 0, &client->connection));
    hvq_client_config_free(client_config);
}

int main(int count, char **arguments)
{
    static packet to_client[MOST], to_server[MOST];
    static unsigned char block[65536];
    end client, server;
    counts all;
    hvq_stream stream = { 0, 0 };
    hvq_path path = { 0, 0, 0 };
    uint64_t now;
    size_t left = BYTES;

    if (count != 3) {
        fprintf(stderr, "usage: scheduler CERTIFICATE KEY\n");
        return 2;
    }
    memset(&client, 0, sizeof client);
    memset(&server, 0, sizeof server);
    memset(&all, 0, sizeof all);
    client.queue = to_client;
    server.queue = to_server;
    set_up(&client, &server, &all, arguments + 1);

    for (now = 0; now < 60000u * (uint64_t)STEP && server.received < BYTES; now += STEP / 4) {
        deliver(&server, now);
        deliver(&client, now);
        if (client.may_open && path.id == 0) {
            hvq_route second = route(1);
            CHECK(hvq_path_open(client.endpoint, client.connection, &second, now, &path));
            CHECK(hvq_stream_open(client.endpoint, client.connection, HVQ_UNIDIRECTIONAL, &stream));
        }
        while (path.id != 0 && left > 0) {
            size_t written, some = left < sizeof block ? left : sizeof block;
            hvq_result result = hvq_stream_write(client.endpoint, stream, block, some, &written);
            if (result == HVQ_ERR_BLOCKED)
                break;
            CHECK(result);
            left -= written;
            if (left == 0)
                CHECK(hvq_stream_finish(client.endpoint, stream));
        }
        run(&client, &server, now);
        run(&server, &client, now);
    }

    printf("%llu bytes after %llu ms\n", (unsigned long long)server.received, (unsigned long long)(now / 1000000));
    printf("data frames: %lu on path 0, %lu on path 1\n", all.data[0], all.data[1]);
    printf("other frames: %lu on path 0, %lu on path 1\n", all.others[0], all.others[1]);
    printf("%lu connections had the scheduler\n", all.connections);
    CHECK(hvq_endpoint_free(client.endpoint));
    CHECK(hvq_endpoint_free(server.endpoint));
    return server.received == BYTES && all.data[0] > 0 && all.data[1] == 0 && all.others[1] > all.others[0] ? 0 : 1;
}
