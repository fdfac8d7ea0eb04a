/*
 * An HTTP/3 client: libnghttp3 above hvq.
 *
 *     hvq-curl [-k | --ca FILE] [--local ADDRESS] [--path LOCAL,REMOTE]... [-v] [-u URGENCY] URL [[-u URGENCY] URL]...
 *
 * All URLs are fetched at a time from the host of the first one, each with the urgency before it (RFC 9218, 0 to 7).
 * --local is the address of the first path, such as 127.0.0.1:0; each --path opens one more. Bodies are counted and
 * dropped; a line for each URL tells the status, the bytes and the order in which they were complete.
 */
#include "net.h"

#include <netdb.h>
#include <nghttp3/nghttp3.h>

#define MOST_URLS 32
#define MOST_PATHS (NET_SOCKETS - 1)

typedef struct request {
    const char *url, *path;
    uint32_t urgency;
    hvq_stream stream;
    char status[8], protocol[8];
    size_t bytes;
    int done, order;
} request;

typedef struct curl {
    hvq_endpoint *endpoint;
    nghttp3_conn *http;
    net sockets;
    uint64_t connection;
    char host[256], authority[300];
    request requests[MOST_URLS];
    int count, complete, failed, closed, connected;
    hvq_route paths[MOST_PATHS];
    int path_count, paths_opened;
    int insecure, verbose;
    const char *ca, *local;
} curl;

static void http_check(int result, const char *what)
{
    if (result != 0) {
        fprintf(stderr, "%s: %s\n", what, nghttp3_strerror(result));
        exit(1);
    }
}

static int recv_header(nghttp3_conn *http, int64_t id, int32_t token, nghttp3_rcbuf *name, nghttp3_rcbuf *value,
                       uint8_t flags, void *user, void *stream_user)
{
    request *one = (request *)stream_user;
    nghttp3_vec text = nghttp3_rcbuf_get_buf(value);
    (void)http, (void)id, (void)name, (void)flags, (void)user;
    if (token == NGHTTP3_QPACK_TOKEN__STATUS && text.len < sizeof one->status)
        memcpy(one->status, text.base, text.len);
    return 0;
}

static int recv_data(nghttp3_conn *http, int64_t id, const uint8_t *data, size_t length, void *user,
                     void *stream_user)
{
    (void)http, (void)id, (void)data, (void)user;
    ((request *)stream_user)->bytes += length;
    return 0;
}

static int end_stream(nghttp3_conn *http, int64_t id, void *user, void *stream_user)
{
    curl *self = (curl *)user;
    request *one = (request *)stream_user;
    (void)http, (void)id;
    if (!one->done) {
        one->done = 1;
        one->order = ++self->complete;
    }
    return 0;
}

/* Gives the streams of the connection what HTTP/3 has to say. */
static void http_send(curl *self)
{
    while (self->http) {
        nghttp3_vec parts[8];
        int64_t id = -1;
        int ends = 0;
        nghttp3_ssize count = nghttp3_conn_writev_stream(self->http, &id, &ends, parts, 8);
        nghttp3_ssize index;
        hvq_stream stream;
        size_t written = 0, offered = 0;
        hvq_result result = HVQ_OK;

        if (count < 0)
            http_check((int)count, "nghttp3_conn_writev_stream");
        if (id < 0)
            return;
        stream.connection = self->connection;
        stream.id = (uint64_t)id;
        for (index = 0; index < count && result == HVQ_OK; index++) {
            size_t taken = 0;
            result = hvq_stream_write(self->endpoint, stream, parts[index].base, parts[index].len, &taken);
            written += taken;
            offered += parts[index].len;
            if (taken < parts[index].len)
                break;
        }
        /* The library has copied the bytes: they need not be kept until the peer has them. */
        http_check(nghttp3_conn_add_write_offset(self->http, id, written), "nghttp3_conn_add_write_offset");
        http_check(nghttp3_conn_add_ack_offset(self->http, id, written), "nghttp3_conn_add_ack_offset");
        if (written < offered || result == HVQ_ERR_BLOCKED)
            nghttp3_conn_block_stream(self->http, id);
        else if (ends)
            CHECK(hvq_stream_finish(self->endpoint, stream));
    }
}

static void header(nghttp3_nv *field, const char *name, const char *value)
{
    field->name = (uint8_t *)(uintptr_t)name;
    field->namelen = strlen(name);
    field->value = (uint8_t *)(uintptr_t)value;
    field->valuelen = strlen(value);
    field->flags = NGHTTP3_NV_FLAG_NONE;
}

static void submit(curl *self, request *one)
{
    nghttp3_nv fields[6];
    char priority[16];
    CHECK(hvq_stream_open(self->endpoint, self->connection, HVQ_BIDIRECTIONAL, &one->stream));
    /* For the request as it is sent, and for the answer as the server sends it. */
    CHECK(hvq_stream_set_priority(self->endpoint, one->stream, one->urgency, 0));
    snprintf(priority, sizeof priority, "u=%u", one->urgency);
    header(&fields[0], ":method", "GET");
    header(&fields[1], ":scheme", "https");
    header(&fields[2], ":authority", self->authority);
    header(&fields[3], ":path", one->path);
    header(&fields[4], "user-agent", "hvq-curl");
    header(&fields[5], "priority", priority);
    http_check(nghttp3_conn_submit_request(self->http, (int64_t)one->stream.id, fields, 6, NULL, one),
               "nghttp3_conn_submit_request");
}

/* The connection is there: control streams first, then the requests. */
static void start(curl *self)
{
    nghttp3_callbacks callbacks;
    nghttp3_settings settings;
    hvq_stream control, encoder, decoder;
    int index;

    self->connected = 1;
    memset(&callbacks, 0, sizeof callbacks);
    callbacks.recv_header = recv_header;
    callbacks.recv_data = recv_data;
    callbacks.end_stream = end_stream;
    nghttp3_settings_default(&settings);
    http_check(nghttp3_conn_client_new(&self->http, &callbacks, &settings, nghttp3_mem_default(), self),
               "nghttp3_conn_client_new");
    CHECK(hvq_stream_open(self->endpoint, self->connection, HVQ_UNIDIRECTIONAL, &control));
    CHECK(hvq_stream_open(self->endpoint, self->connection, HVQ_UNIDIRECTIONAL, &encoder));
    CHECK(hvq_stream_open(self->endpoint, self->connection, HVQ_UNIDIRECTIONAL, &decoder));
    http_check(nghttp3_conn_bind_control_stream(self->http, (int64_t)control.id), "control stream");
    http_check(nghttp3_conn_bind_qpack_streams(self->http, (int64_t)encoder.id, (int64_t)decoder.id), "QPACK streams");
    for (index = 0; index < self->count; index++)
        submit(self, &self->requests[index]);
    http_send(self);
}

static void http_read(curl *self, uint64_t id)
{
    hvq_stream stream;
    hvq_bytes chunk;
    hvq_result result;
    nghttp3_ssize consumed = 0;

    stream.connection = self->connection;
    stream.id = id;
    while (consumed >= 0 && (result = hvq_stream_read_chunk(self->endpoint, stream, 1 << 16, &chunk)) != HVQ_ERR_BLOCKED) {
        int ends = result == HVQ_ERR_END;
        if (result == HVQ_OK)
            consumed = nghttp3_conn_read_stream(self->http, (int64_t)id, chunk.data, chunk.length, 0);
        else if (ends)
            consumed = nghttp3_conn_read_stream(self->http, (int64_t)id, NULL, 0, 1);
        else
            break;
        if (ends)
            break;
    }
    if (consumed < 0) {
        fprintf(stderr, "HTTP/3: %s\n", nghttp3_strerror((int)consumed));
        hvq_connection_close(self->endpoint, self->connection,
                             nghttp3_err_infer_quic_app_error_code((int)consumed), NULL, net_now());
        self->failed = 1;
    }
    http_send(self);
}

static void report(curl *self)
{
    hvq_path_statistics paths[NET_SOCKETS];
    size_t count = 0, index;
    int number;
    for (number = 0; number < self->count; number++) {
        request *one = &self->requests[number];
        printf("%s: status %s, %zu bytes, urgency %u, number %d to be complete\n", one->url, one->status, one->bytes,
               one->urgency, one->order);
    }
    if (!self->verbose || hvq_path_list(self->endpoint, self->connection, paths, NET_SOCKETS, &count) != HVQ_OK)
        return;
    for (index = 0; index < count; index++)
        printf("path %u: %llu bytes received, %llu sent, round trip %llu us\n", paths[index].id,
               (unsigned long long)paths[index].bytes_received, (unsigned long long)paths[index].bytes_sent,
               (unsigned long long)(paths[index].rtt / 1000));
}

static void on_event(curl *self, const hvq_event *event)
{
    hvq_path path;
    hvq_stream stream;
    switch (event->kind) {
    case HVQ_EVENT_CONNECTED:
        if (self->path_count == 0)
            start(self);
        break;
    case HVQ_EVENT_PATH_AVAILABLE:
        while (self->paths_opened < self->path_count &&
               hvq_path_open(self->endpoint, self->connection, &self->paths[self->paths_opened], net_now(), &path) ==
                   HVQ_OK)
            self->paths_opened++;
        break;
    case HVQ_EVENT_PATH_VALIDATED:
        if (event->path > 0 && !self->connected)
            start(self);
        break;
    case HVQ_EVENT_STREAM_OPENED:
        while (hvq_stream_accept(self->endpoint, self->connection, event->direction, &stream) == HVQ_OK)
            ;
        break;
    case HVQ_EVENT_STREAM_READABLE:
        if (self->http)
            http_read(self, event->stream);
        break;
    case HVQ_EVENT_STREAM_WRITABLE:
        nghttp3_conn_unblock_stream(self->http, (int64_t)event->stream);
        http_send(self);
        break;
    case HVQ_EVENT_CLOSED:
        if (event->closed != HVQ_CLOSED_LOCALLY) {
            fprintf(stderr, "%.*s\n", (int)event->bytes.length, (const char *)event->bytes.data);
            self->failed = 1;
        }
        self->closed = 1;
        break;
    default:
        break;
    }
    if (self->count > 0 && self->complete == self->count && !self->closed) {
        report(self);
        self->complete = 0;
        self->count = 0;
        CHECK(hvq_connection_close(self->endpoint, self->connection, NGHTTP3_H3_NO_ERROR, NULL, net_now()));
    }
}

/* Takes "https://host:port/path" apart, and looks the host up. */
static void locate(curl *self, hvq_address *remote)
{
    const char *start = self->requests[0].url + 8, *end = start + strcspn(start, "/");
    struct addrinfo hints, *found;
    char *colon;
    const char *port = "443";
    snprintf(self->authority, sizeof self->authority, "%.*s", (int)(end - start), start);
    snprintf(self->host, sizeof self->host, "%.255s", self->authority);
    colon = strrchr(self->host, ':');
    if (colon) {
        *colon = 0;
        port = colon + 1;
    }
    memset(&hints, 0, sizeof hints);
    hints.ai_family = AF_INET;
    hints.ai_socktype = SOCK_DGRAM;
    if (getaddrinfo(self->host, port, &hints, &found) != 0) {
        fprintf(stderr, "%s: unknown host\n", self->host);
        exit(1);
    }
    CHECK(hvq_address_from_sockaddr(found->ai_addr, found->ai_addrlen, remote));
    freeaddrinfo(found);
}

static void add_path(curl *self, char *text)
{
    char local[64];
    char *comma = strchr(text, ',');
    hvq_route *route = &self->paths[self->path_count];
    if (!comma || self->path_count == MOST_PATHS) {
        fprintf(stderr, "a path is LOCAL,REMOTE, and there are few: %s\n", text);
        exit(2);
    }
    snprintf(local, sizeof local, "%.*s", (int)(comma - text), text);
    route->local = self->sockets.addresses[net_bind(&self->sockets, local)];
    CHECK(hvq_address_parse(comma + 1, &route->remote));
    self->path_count++;
}

static void read_arguments(curl *self, int count, char **arguments)
{
    uint32_t urgency = 3;
    int index;
    self->local = "127.0.0.1:0";
    for (index = 1; index < count; index++) {
        char *one = arguments[index];
        int has_value = index + 1 < count;
        if (strcmp(one, "-k") == 0)
            self->insecure = 1;
        else if (strcmp(one, "-v") == 0)
            self->verbose = 1;
        else if (strcmp(one, "--ca") == 0 && has_value)
            self->ca = arguments[++index];
        else if (strcmp(one, "--local") == 0 && has_value)
            self->local = arguments[++index];
        else if (strcmp(one, "-u") == 0 && has_value)
            urgency = (uint32_t)atoi(arguments[++index]);
        else if (strcmp(one, "--path") == 0 && has_value)
            add_path(self, arguments[++index]);
        else if (strncmp(one, "https://", 8) == 0 && self->count < MOST_URLS) {
            request *wanted = &self->requests[self->count++];
            const char *slash = strchr(one + 8, '/');
            wanted->url = one;
            wanted->path = slash ? slash : "/";
            wanted->urgency = urgency;
        } else {
            fprintf(stderr, "hvq-curl: %s?\n", one);
            exit(2);
        }
    }
    if (self->count == 0) {
        fprintf(stderr, "usage: hvq-curl [-k | --ca FILE] [--local ADDRESS] [--path LOCAL,REMOTE]... [-v] "
                        "[-u URGENCY] https://HOST:PORT/PATH...\n");
        exit(2);
    }
}

static void connect_to(curl *self)
{
    static const char *const protocols[] = { "h3" };
    hvq_client_options options;
    hvq_connect_options connect;
    hvq_client_config *config;

    memset(&connect, 0, sizeof connect);
    locate(self, &connect.route.remote);
    connect.route.local = self->sockets.addresses[net_bind(&self->sockets, self->local)];
    CHECK(hvq_client_options_init(&options, sizeof options));
    options.alpn = protocols;
    options.alpn_count = 1;
    options.ca_file = self->ca;
    options.insecure = self->insecure ? 1 : 0;
    CHECK(hvq_client_config_new(&options, &config));
    CHECK(hvq_endpoint_new(NULL, &self->endpoint));
    connect.config = config;
    connect.server_name = self->host;
    CHECK(hvq_endpoint_connect(self->endpoint, &connect, net_now(), &self->connection));
    hvq_client_config_free(config);
}

int main(int count, char **arguments)
{
    static curl self;
    read_arguments(&self, count, arguments);
    connect_to(&self);
    while (!self.closed) {
        hvq_output output;
        for (;;) {
            CHECK(hvq_endpoint_poll(self.endpoint, net_now(), &output));
            if (output.kind == HVQ_OUTPUT_TRANSMIT)
                net_send(&self.sockets, self.endpoint, &output.transmit);
            else if (output.kind == HVQ_OUTPUT_EVENT)
                on_event(&self, &output.event);
            else
                break;
        }
        if (!self.closed) {
            net_wait(&self.sockets, output.deadline, -1);
            net_receive(&self.sockets, self.endpoint);
        }
    }
    nghttp3_conn_del(self.http);
    CHECK(hvq_endpoint_free(self.endpoint));
    net_close(&self.sockets);
    return self.failed;
}
