/*
 * Random sequences of calls with random arguments: whatever a program does that can be caught must be an error, and
 * nothing may be read or written out of place (build it with -fsanitize=address,undefined).
 *
 *     calls CERTIFICATE KEY seeds FIRST COUNT      the sequences of so many seeds
 *     calls CERTIFICATE KEY seconds FIRST SECONDS  as many as there is time for
 *     calls CERTIFICATE KEY FILE...                sequences that begin with the bytes of a file, as those in corpus/
 *
 * A finding is a crash, or an exit with the number of the seed: a result that means that the library failed, or one that has
 * no name.
 */
#include <hvq.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CALLS 600
#define MOST 512
#define ENDS 2

typedef struct packet {
    hvq_route route;
    size_t length;
    unsigned ecn;
    unsigned char *bytes;
} packet;

/* One sequence. */
typedef struct world {
    const unsigned char *script;
    size_t script_length;
    uint64_t random, now, calls, accepted;
    hvq_endpoint *ends[ENDS];
    hvq_client_config *client;
    hvq_server_config *server;
    uint64_t connection[ENDS];
    hvq_stream streams[8];
    int stream_count;
    packet queue[ENDS][MOST]; /* towards that end */
    size_t count[ENDS];
    int reentered, verify_answer, released, owned;
    unsigned char ticket[8192]; /* the latest one */
    size_t ticket_length;
} world;

static const char *certificate_file, *key_file;
static uint64_t seed_now;
static world *current;
static uint64_t total_calls, total_accepted, total_connected, total_paths, total_early;

static unsigned random_bits(world *w)
{
    if (w->script_length > 0) {
        w->script_length--;
        return *w->script++ * 257u;
    }
    w->random ^= w->random << 13;
    w->random ^= w->random >> 7;
    w->random ^= w->random << 17;
    return (unsigned)(w->random >> 24);
}

static unsigned below(world *w, unsigned most)
{
    return random_bits(w) % most;
}

static int rarely(world *w)
{
    return below(w, 24) == 0;
}

static uint64_t any(world *w)
{
    static const uint64_t odd[] = { 0, 1, 2, 63, 64, 1199, 1200, 65527, 65535, 65536, 0xffffffffu, 1ull << 60,
                                    (1ull << 62) - 1, 1ull << 62, UINT64_MAX - 1, UINT64_MAX };
    return below(w, 2) ? odd[below(w, sizeof odd / sizeof odd[0])] : random_bits(w) % 5000;
}

static void result_of(world *w, hvq_result result, const char *call)
{
    char text[64];
    w->calls++;
    w->accepted += result == HVQ_OK;
    if (result == HVQ_ERR_PANIC || result > 0 || strcmp(hvq_error_name(result), "HVQ_ERR_?") == 0) {
        hvq_last_error(text, sizeof text);
        fprintf(stderr, "seed %llu: %s: %d, %s\n", (unsigned long long)seed_now, call, result, text);
        abort();
    }
}

#define DO(call) result_of(w, (call), #call)

/* Callbacks call the library, as they must not. */
static void reenter(void)
{
    world *w = current;
    hvq_output output;
    if (!w || !w->ends[0] || rarely(w) == 0)
        return;
    w->reentered++;
    /* One of the two is in a call, the other one may be used. */
    if (hvq_endpoint_poll(w->ends[0], w->now, &output) != HVQ_ERR_BUSY &&
        hvq_endpoint_poll(w->ends[1], w->now, &output) != HVQ_ERR_BUSY && w->ends[1])
        abort();
}

static void place(void *state, const hvq_item *item, const hvq_path_view *paths, size_t count, hvq_placement *placement)
{
    world *w = current;
    (void)state;
    reenter();
    if (below(w, 3)) {
        unsigned index = below(w, (unsigned)count);
        placement->kind = HVQ_PLACE_ON;
        placement->path = paths[index].id;
        placement->bytes = item->bytes;
        return;
    }
    placement->kind = below(w, 5);
    placement->path = (uint32_t)any(w);
    placement->bytes = any(w);
    placement->wait = any(w);
    placement->set = any(w);
}

static void observe(void *state, const hvq_observation *observation)
{
    (void)state, (void)observation;
    reenter();
}

static size_t repeats(void *state, const hvq_item *item, const hvq_path_view *path)
{
    (void)state, (void)item, (void)path;
    return below(current, 3) ? 0 : (size_t)any(current);
}

static int32_t verify(void *user, const char *name, const hvq_bytes *chain, size_t count)
{
    (void)user, (void)name, (void)chain, (void)count;
    reenter();
    return current->verify_answer == 3 ? (int32_t)any(current) : current->verify_answer;
}

static size_t first(void *state, const hvq_flights *flights, const hvq_path_view *paths, size_t count)
{
    (void)state;
    reenter();
    if (count == 0 || flights->sent == 0 || paths[count - 1].standing > 3)
        abort();
    return rarely(current) ? (size_t)any(current) : below(current, (unsigned)count);
}

static uint32_t admit(void *user, const hvq_candidate *candidate)
{
    (void)user;
    reenter();
    return rarely(current) ? below(current, 6) : candidate->proposal;
}

static void put_ticket(void *user, const char *name, hvq_bytes protocol, hvq_bytes ticket)
{
    (void)user;
    reenter();
    if (strcmp(name, "localhost") != 0 || protocol.length != 4 || ticket.length == 0)
        abort();
    if (ticket.length <= sizeof current->ticket) {
        memcpy(current->ticket, ticket.data, ticket.length);
        current->ticket_length = ticket.length;
    }
}

/* The latest ticket, none, or a damaged one. */
static int32_t take_ticket(void *user, const char *name, const hvq_bytes *protocols, size_t count, hvq_buffer *ticket)
{
    world *w = current;
    (void)user, (void)name;
    reenter();
    if (count == 0 || protocols[0].length != 4 || ticket->capacity < sizeof w->ticket)
        abort();
    if (w->ticket_length == 0 || rarely(w))
        return (int32_t)below(w, 3);
    memcpy(ticket->data, w->ticket, w->ticket_length);
    if (rarely(w))
        ticket->data[below(w, (unsigned)w->ticket_length)] ^= 1;
    ticket->length = rarely(w) ? (size_t)any(w) : w->ticket_length;
    return 1;
}

static void keylog(void *user, const char *line)
{
    (void)user;
    if (strlen(line) == 0)
        abort();
    reenter();
}

static void log_line(void *user, uint64_t now, uint32_t level, const char *line)
{
    (void)user, (void)now, (void)level;
    if (strlen(line) == 0)
        abort();
}

static void release(void *user)
{
    current->released++;
    free(user);
}

/* Structs that may say that they are larger than they are: a length that is not true is not looked for. */
static union {
    hvq_client_options options;
    unsigned char zeros[1 << 17];
} large_options;
static union {
    hvq_scheduler scheduler;
    unsigned char zeros[1 << 17];
} large_scheduler;

static hvq_address address(unsigned port)
{
    hvq_address made;
    memset(&made, 0, sizeof made);
    made.family = 4;
    made.port = (uint16_t)port;
    made.ip[0] = 192;
    return made;
}

static hvq_route route(world *w)
{
    hvq_route made;
    unsigned path = below(w, 4);
    made.local = address(1000 + path);
    made.remote = address(2000 + path);
    if (rarely(w))
        made.local.family = (uint16_t)below(w, 8);
    if (rarely(w))
        made.remote.port = 0;
    return made;
}

static void fill_transport(world *w, hvq_transport_config *config, hvq_channel *channel)
{
    hvq_scheduler *scheduler = &large_scheduler.scheduler;
    static const char *const names[] = { "hvc", "round-robin", "redundant", "min-rtt", "single:1", "no-such", "" };
    static const char *const controllers[] = { "cubic", "bbr", "copa", "newreno", "nothing" };
    DO(hvq_transport_config_init(config, sizeof *config));
    if (below(w, 2))
        config->scheduler = names[rarely(w) ? 5 + below(w, 2) : below(w, 5)];
    if (below(w, 2))
        config->congestion = controllers[rarely(w) ? 4 : below(w, 4)];
    if (below(w, 3) == 0) {
        memset(scheduler, 0, sizeof *scheduler);
        scheduler->size = rarely(w) ? (size_t)any(w) : sizeof *scheduler;
        scheduler->place = rarely(w) ? NULL : place;
        scheduler->observe = below(w, 2) ? observe : NULL;
        scheduler->repeats = below(w, 2) ? repeats : NULL;
        scheduler->first = below(w, 2) ? first : NULL;
        config->custom_scheduler = scheduler;
    }
    if (below(w, 4) == 0) {
        memset(channel, 0, sizeof *channel);
        channel->local = address(1000 + below(w, 4));
        channel->hints.known = below(w, rarely(w) ? 64 : 16);
        channel->hints.rate = any(w);
        channel->hints.delay = any(w);
        channel->dscp = below(w, 66);
        config->channels = channel;
        config->channel_count = 1;
    }
    if (below(w, 4) == 0) {
        config->log = log_line;
        config->log_level = 1 + below(w, rarely(w) ? 6 : 4);
    }
    if (below(w, 4) == 0) {
        uint64_t *fields = &config->idle_timeout;
        fields[below(w, 15)] = any(w);
    }
    if (rarely(w)) {
        uint32_t *fields = &config->fixed_datagram_size;
        fields[below(w, 6)] = (uint32_t)any(w);
    }
    if (below(w, 3) == 0)
        config->segments = 1 + below(w, 64);
    if (below(w, 4) == 0) {
        uint64_t *fields = &config->ack_threshold;
        fields[below(w, 9)] = any(w);
    }
    if (below(w, 4) == 0) {
        uint32_t *fields = &config->follow_preferred;
        fields[below(w, 4)] = rarely(w) ? (uint32_t)any(w) : below(w, 2);
    }
    if (below(w, 4) == 0) {
        static const uint32_t versions[] = { HVQ_QUIC_2, HVQ_QUIC_1, HVQ_QUIC_1, 7 };
        config->versions = versions;
        config->version_count = 1 + below(w, rarely(w) ? 4 : 2);
        config->choose_version = below(w, 2);
        config->first_version = below(w, 2) ? HVQ_QUIC_2 : 0;
    }
    if (below(w, 6) == 0)
        config->preferred_ipv4 = address(2000 + below(w, 4));
}

static void make_configs(world *w)
{
    static const char *const protocols[] = { "fuzz" };
    hvq_transport_config transport;
    hvq_client_options *client = &large_options.options;
    hvq_server_options server;
    hvq_channel channel;
    hvq_session_store store;
    static const uint16_t suites[] = { 0x1302, 0x1303, 0x1301, 9 };

    fill_transport(w, &transport, &channel);
    memset(&large_options, 0, sizeof large_options);
    DO(hvq_client_options_init(client, sizeof *client));
    client->transport = rarely(w) ? NULL : &transport;
    client->alpn = protocols;
    client->alpn_count = rarely(w) ? 0 : 1;
    if (below(w, 2))
        client->insecure = 1;
    else
        client->verify = verify;
    w->verify_answer = rarely(w) ? (int)below(w, 4) : HVQ_VERIFY_TRUSTED;
    client->keylog = below(w, 3) ? NULL : keylog;
    if (below(w, 2)) {
        store.size = sizeof store;
        store.user = w;
        store.put = rarely(w) ? NULL : put_ticket;
        store.take = take_ticket;
        client->sessions = &store;
        client->early_data = rarely(w) ? below(w, 4) : 1;
    }
    if (below(w, 4) == 0) {
        client->suites = suites;
        client->suite_count = 1 + below(w, rarely(w) ? 4 : 3);
    }
    if (below(w, 4) == 0) {
        client->token.data = (const uint8_t *)suites;
        client->token.length = sizeof suites;
    }
    if (rarely(w))
        client->size = below(w, 2) ? offsetof(hvq_client_options, sessions) : (size_t)any(w);
    DO(hvq_client_config_new(client, &w->client));

    fill_transport(w, &transport, &channel);
    DO(hvq_server_options_init(&server, sizeof server));
    server.transport = &transport;
    server.alpn = protocols;
    server.alpn_count = 1;
    server.certificate_file = certificate_file;
    server.key_file = rarely(w) ? certificate_file : key_file;
    server.retry_from = below(w, 4) ? UINT64_MAX : 0;
    server.admission = below(w, 4) ? NULL : admit;
    server.early_data = below(w, 2);
    DO(hvq_server_config_new(&server, &w->server));
}

static void make_ends(world *w)
{
    static unsigned char seed[32];
    hvq_endpoint_options options;
    int index;
    for (index = 0; index < ENDS; index++) {
        DO(hvq_endpoint_options_init(&options, sizeof options));
        options.server = index == 1 ? w->server : NULL;
        memset(seed, (int)(seed_now + (unsigned)index), sizeof seed);
        options.seed = seed;
        options.epoch = 1;
        if (rarely(w))
            options.id_length = below(w, 24);
        DO(hvq_endpoint_new(&options, &w->ends[index]));
    }
}

static void connect_one(world *w)
{
    hvq_connect_options options;
    memset(&options, 0, sizeof options);
    options.config = rarely(w) ? NULL : w->client;
    options.server_name = rarely(w) ? (below(w, 2) ? "" : "\xff") : "localhost";
    options.route = route(w);
    DO(hvq_endpoint_connect(w->ends[rarely(w)], rarely(w) ? NULL : &options, w->now, &w->connection[0]));
}

static void take_event(world *w, int end, const hvq_event *event)
{
    if (event->kind == HVQ_EVENT_CONNECTED || event->kind == HVQ_EVENT_EARLY_DATA)
        w->connection[end] = event->connection;
    total_connected += event->kind == HVQ_EVENT_CONNECTED;
    total_early += event->kind == HVQ_EVENT_EARLY_DATA;
    total_paths += event->kind == HVQ_EVENT_PATH_VALIDATED && event->path > 0;
    if (event->kind == HVQ_EVENT_STREAM_OPENED) {
        hvq_stream stream;
        while (hvq_stream_accept(w->ends[end], event->connection, event->direction, &stream) == HVQ_OK)
            w->streams[w->stream_count++ % 8] = stream;
    }
}

/* Polls an end for a while. Its pointers are read, so that a sanitizer sees what they point to. */
static void poll_one(world *w, int end)
{
    hvq_output output;
    int round;
    for (round = 0; round < 64 && w->ends[end]; round++) {
        DO(hvq_endpoint_poll(w->ends[end], w->now, &output));
        if (output.kind == HVQ_OUTPUT_IDLE)
            return;
        if (output.kind == HVQ_OUTPUT_EVENT)
            take_event(w, end, &output.event);
        else if (w->count[1 - end] < MOST) {
            packet *one = &w->queue[1 - end][w->count[1 - end]++];
            size_t step = output.transmit.segment ? output.transmit.segment : output.transmit.length;
            one->length = step < output.transmit.length ? step : output.transmit.length;
            if (below(w, 2))
                one->length = output.transmit.length;
            one->bytes = (unsigned char *)malloc(one->length);
            memcpy(one->bytes, output.transmit.bytes, one->length);
            one->route = output.transmit.route;
            one->ecn = (unsigned)(one->length == output.transmit.length ? output.transmit.segment : 0);
        }
    }
}

static void deliver(world *w, int end)
{
    size_t index;
    for (index = 0; index < w->count[end]; index++) {
        packet *one = &w->queue[end][index];
        hvq_incoming incoming;
        memset(&incoming, 0, sizeof incoming);
        incoming.route.local = one->route.remote;
        incoming.route.remote = one->route.local;
        incoming.bytes = rarely(w) && rarely(w) ? NULL : one->bytes;
        incoming.length = one->length;
        incoming.segment = one->ecn;
        incoming.ecn = below(w, 4);
        if (rarely(w) && one->length > 0)
            one->bytes[below(w, (unsigned)one->length)] ^= (unsigned char)(1 + below(w, 255));
        if (w->ends[end] && !(rarely(w) && below(w, 2)))
            DO(hvq_endpoint_handle(w->ends[end], &incoming, w->now));
        free(one->bytes);
    }
    w->count[end] = 0;
}

static hvq_endpoint *an_end(world *w, int end)
{
    return rarely(w) && rarely(w) ? NULL : w->ends[end];
}

static hvq_stream a_stream(world *w, int end)
{
    hvq_stream stream = w->streams[below(w, 8)];
    stream.connection = rarely(w) ? any(w) : w->connection[end];
    if (rarely(w))
        stream.id = any(w);
    return stream;
}

static void call_stream(world *w, int end)
{
    hvq_endpoint *endpoint = an_end(w, end);
    hvq_stream stream = a_stream(w, end);
    size_t length = (size_t)(below(w, 4) ? below(w, 3000) : below(w, 200000));
    unsigned char *buffer = (unsigned char *)malloc(length + 1);
    size_t count;
    uint32_t is_early;
    hvq_bytes chunk;
    hvq_owned owned;

    memset(buffer, 7, length + 1);
    switch (below(w, 13)) {
    case 0:
        DO(hvq_stream_open(endpoint, w->connection[end], below(w, rarely(w) ? 4 : 2), &stream));
        w->streams[w->stream_count++ % 8] = stream;
        break;
    case 1:
    case 2:
        DO(hvq_stream_write(endpoint, stream, rarely(w) ? NULL : buffer, length, rarely(w) ? NULL : &count));
        break;
    case 3:
        owned.bytes.data = buffer;
        owned.bytes.length = length;
        owned.release = release;
        owned.user = buffer;
        w->owned++;
        DO(hvq_stream_write_owned(endpoint, stream, &owned, &count));
        return;
    case 4:
        DO(hvq_stream_end_message(endpoint, stream, any(w)));
        break;
    case 5:
        if (below(w, 3) == 0)
            DO(hvq_stream_finish(endpoint, stream));
        break;
    case 6:
        if (rarely(w))
            DO(hvq_stream_reset(endpoint, stream, any(w)));
        break;
    case 7:
        if (rarely(w))
            DO(hvq_stream_stop(endpoint, stream, any(w)));
        break;
    case 8:
        DO(hvq_stream_set_priority(endpoint, stream, below(w, 9), below(w, 3)));
        break;
    case 9:
    case 10:
        DO(hvq_stream_read(endpoint, stream, rarely(w) ? NULL : buffer, length, &count));
        break;
    case 11:
        DO(hvq_stream_is_early(endpoint, stream, rarely(w) ? NULL : &is_early));
        break;
    default:
        DO(hvq_stream_read_chunk(endpoint, stream, (size_t)any(w), rarely(w) ? NULL : &chunk));
        break;
    }
    free(buffer);
}

static void call_path(world *w, int end)
{
    static const char *const names[] = { "cubic", "bbr", "vegas", "copa", "none", "\xff" };
    hvq_endpoint *endpoint = an_end(w, end);
    hvq_path path;
    hvq_route where = route(w);
    hvq_path_statistics *room;
    hvq_hints hints;
    size_t count, capacity = below(w, 5);

    memset(&hints, 0, sizeof hints);
    path.connection = rarely(w) ? any(w) : w->connection[end];
    path.id = rarely(w) ? (uint32_t)any(w) : below(w, 4);
    path.reserved = 0;
    switch (below(w, 13)) {
    case 0:
    case 1:
        DO(hvq_path_open(endpoint, w->connection[end], rarely(w) ? NULL : &where, w->now, &path));
        break;
    case 2:
        if (below(w, 4) == 0)
            DO(hvq_path_abandon(endpoint, path, any(w), w->now));
        break;
    case 3:
        DO(hvq_path_set_status(endpoint, path, below(w, 3)));
        break;
    case 4:
        hints.known = below(w, 20);
        hints.sharing = below(w, rarely(w) ? 6 : 4);
        hints.rate = any(w);
        hints.delay = any(w);
        hints.loss = (uint32_t)any(w);
        DO(hvq_path_set_hints(endpoint, path, rarely(w) ? NULL : &hints));
        break;
    case 5:
        DO(hvq_path_set_congestion(endpoint, path, rarely(w) ? NULL : names[below(w, 6)]));
        break;
    case 6:
        DO(hvq_path_set_keep_alive(endpoint, path, any(w)));
        break;
    case 7:
        DO(hvq_path_set_dscp(endpoint, path, below(w, 80)));
        break;
    case 8:
        room = (hvq_path_statistics *)malloc(capacity * sizeof *room + 1);
        DO(hvq_path_list(endpoint, w->connection[end], room, capacity, &count));
        free(room);
        break;
    case 9:
        room = (hvq_path_statistics *)malloc(sizeof *room);
        DO(hvq_path_get_statistics(endpoint, path, rarely(w) ? NULL : room));
        free(room);
        break;
    default:
        DO(hvq_path_migrate(endpoint, path, &where, rarely(w) ? 2 : below(w, 2), w->now));
        break;
    case 10:
        DO(hvq_path_rotate_connection_id(endpoint, path, w->now));
        break;
    case 11:
        DO(hvq_path_retire_connection_ids(endpoint, path));
        break;
    }
}

static void call_connection(world *w, int end)
{
    hvq_endpoint *endpoint = an_end(w, end);
    uint64_t connection = rarely(w) ? any(w) : w->connection[end];
    size_t length = below(w, 3000), count;
    char *buffer = (char *)malloc(length + 1);
    uint64_t numbers[2];
    hvq_connection_info info;
    hvq_endpoint_statistics statistics;
    hvq_datagram datagram;
    hvq_buffer room;
    hvq_route where = route(w);
    hvq_peer peer;
    hvq_frame_counter frames[8];
    hvq_dropped dropped[8];
    hvq_network_path ways[3];

    memset(buffer, 9, length + 1);
    memset(&datagram, 0, sizeof datagram);
    room.data = rarely(w) ? NULL : (uint8_t *)buffer;
    room.capacity = length;
    datagram.bytes.data = (uint8_t *)buffer;
    datagram.bytes.length = length;
    datagram.deadline = any(w);
    datagram.urgency = below(w, 9);
    switch (below(w, 16)) {
    case 0:
        DO(hvq_connection_get_info(endpoint, connection, rarely(w) ? NULL : &info));
        break;
    case 1:
        if (rarely(w))
            DO(hvq_connection_close(endpoint, connection, any(w), below(w, 2) ? NULL : "enough", w->now));
        break;
    case 2:
        w->verify_answer = HVQ_VERIFY_TRUSTED;
        DO(hvq_connection_verify_again(endpoint, connection, w->now));
        break;
    case 3:
        DO(hvq_connection_update_keys(endpoint, connection, w->now));
        break;
    case 4:
        DO(hvq_connection_alpn(endpoint, connection, buffer, length));
        break;
    case 5:
        DO(hvq_connection_server_name(endpoint, connection, rarely(w) ? NULL : buffer, length));
        break;
    case 6:
        DO(hvq_connection_certificate(endpoint, connection, below(w, 3), &room));
        break;
    case 7:
    case 8:
        DO(hvq_datagram_send(endpoint, connection, rarely(w) ? NULL : &datagram));
        break;
    case 9:
        DO(hvq_datagram_receive(endpoint, connection, &room));
        break;
    case 10:
        DO(hvq_endpoint_connections(endpoint, numbers, below(w, 3), &count));
        break;
    case 11:
        DO(hvq_endpoint_get_statistics(endpoint, &statistics));
        break;
    case 12:
        DO(hvq_connection_get_peer(endpoint, connection, rarely(w) ? NULL : &peer));
        break;
    case 13:
        DO(hvq_connection_list_frames(endpoint, connection, frames, below(w, 9), &count));
        DO(hvq_endpoint_list_dropped(endpoint, dropped, below(w, 9), &count));
        break;
    case 14:
        memset(ways, 0, sizeof ways);
        for (count = 0; count < 3; count++) {
            ways[count].route = route(w);
            ways[count].hints.known = below(w, rarely(w) ? 64 : 16);
            ways[count].hints.rate = any(w);
            ways[count].hints.delay = any(w);
        }
        DO(hvq_endpoint_first_network_path(endpoint, rarely(w) ? NULL : w->client, ways, below(w, 4), w->now, &count));
        break;
    default:
        if (rarely(w))
            DO(hvq_endpoint_set_server(endpoint, below(w, 2) ? NULL : w->server));
        DO(hvq_endpoint_refused(endpoint, &where, (size_t)any(w), w->now));
        break;
    }
    free(buffer);
}

static void step(world *w)
{
    static const uint64_t pauses[] = { 0, 1000, 1000000, 20000000, 3000000000u };
    int end = (int)below(w, ENDS);
    switch (below(w, 8)) {
    case 0:
    case 1:
        call_stream(w, end);
        break;
    case 2:
        call_path(w, end);
        break;
    case 3:
        call_connection(w, end);
        break;
    case 4:
        if (below(w, 40) == 0)
            connect_one(w);
        break;
    default:
        poll_one(w, end);
        w->now += pauses[rarely(w) ? 4 : below(w, 4)];
        deliver(w, 1 - end);
        break;
    }
}

static void play(uint64_t seed, const unsigned char *script, size_t length)
{
    static world one;
    world *w = &one;
    int index;
    memset(w, 0, sizeof *w);
    current = w;
    seed_now = seed;
    w->random = seed * 0x9e3779b97f4a7c15u | 1;
    w->script = script;
    w->script_length = length;
    make_configs(w);
    make_ends(w);
    connect_one(w);
    for (index = 0; index < 6; index++) {
        poll_one(w, index % 2);
        w->now += 1000000;
        deliver(w, 1 - index % 2);
    }
    for (index = 0; index < CALLS; index++)
        step(w);
    if (below(w, 2)) {
        hvq_client_config_free(w->client);
        hvq_server_config_free(w->server);
        w->client = NULL;
        w->server = NULL;
    }
    for (index = 0; index < ENDS; index++) {
        hvq_endpoint *freed = w->ends[index];
        deliver(w, index);
        w->ends[index] = NULL;
        DO(hvq_endpoint_free(freed));
    }
    hvq_client_config_free(w->client);
    hvq_server_config_free(w->server);
    if (w->released != w->owned) {
        fprintf(stderr, "seed %llu: %d of %d buffers released\n", (unsigned long long)seed, w->released, w->owned);
        abort();
    }
    total_calls += w->calls;
    total_accepted += w->accepted;
}

static void play_file(const char *name, uint64_t seed)
{
    static unsigned char script[1 << 16];
    FILE *file = fopen(name, "rb");
    size_t length;
    if (!file) {
        perror(name);
        exit(2);
    }
    length = fread(script, 1, sizeof script, file);
    fclose(file);
    play(seed, script, length);
}

int main(int count, char **arguments)
{
    uint64_t seed, played = 0, first, most;
    time_t until;
    int index;
    if (count < 4) {
        fprintf(stderr, "usage: calls CERTIFICATE KEY (seeds FIRST COUNT | seconds FIRST SECONDS | FILE...)\n");
        return 2;
    }
    certificate_file = arguments[1];
    key_file = arguments[2];
    if (count == 6 && (strcmp(arguments[3], "seeds") == 0 || strcmp(arguments[3], "seconds") == 0)) {
        int timed = strcmp(arguments[3], "seconds") == 0;
        first = strtoull(arguments[4], NULL, 10);
        most = strtoull(arguments[5], NULL, 10);
        until = time(NULL) + (time_t)most;
        for (seed = first; timed ? time(NULL) < until : seed < first + most; seed++, played++)
            play(seed, NULL, 0);
    } else {
        for (index = 3; index < count; index++, played++)
            play_file(arguments[index], (uint64_t)index);
    }
    printf("%llu sequences, %llu calls, %llu of them accepted; %llu connected, %llu with 0-RTT, %llu more paths\n",
           (unsigned long long)played, (unsigned long long)total_calls, (unsigned long long)total_accepted,
           (unsigned long long)total_connected, (unsigned long long)total_early, (unsigned long long)total_paths);
    return 0;
}
