/*
 * How a browser might embed the library: an event loop in a thread of its own, one endpoint with sockets on two local
 * addresses, many connections, certificates that another thread judges, and everything can be cancelled at any time.
 *
 *     browser CERTIFICATE REMOTE REMOTE
 *
 * CERTIFICATE is the one (PEM) that the server must have; the remotes are two addresses of an echo server. Twenty tabs
 * each open a connection over both and have bytes echoed; three of four tabs are closed at bad moments.
 */
#include "net.h"

#include <pthread.h>

#define TABS 20
#define BYTES 300000

enum plan { COMPLETE, CANCEL_HANDSHAKE, CANCEL_STREAM, CLOSE_CONNECTION };
enum command { OPEN, CANCEL, VERDICT, QUIT };

typedef struct tab {
    uint64_t connection;
    hvq_stream stream;
    size_t sent, received;
    int started, opened_path, over, complete, forgotten;
} tab;

typedef struct message {
    enum command command;
    int tab;
} message;

/* What the threads share, under `lock`. */
typedef struct shared {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    message queue[4 * TABS];
    int queued;
    int wake[2];
    /* Certificates: what the judge was asked, and what it said. */
    int asked, judged, verdict;
    unsigned char presented[4096], expected[4096];
    size_t presented_length, expected_length;
    int finished, complete, cancelled;
} shared;

/* What only the loop's thread touches. */
typedef struct loop {
    shared *common;
    hvq_endpoint *endpoint;
    hvq_client_config *config;
    net sockets;
    hvq_address remotes[2];
    tab tabs[TABS];
    int quit;
} loop;

static enum plan plan_of(int index)
{
    return (enum plan)(index % 4);
}

static void post(shared *common, enum command command, int index)
{
    pthread_mutex_lock(&common->lock);
    common->queue[common->queued].command = command;
    common->queue[common->queued].tab = index;
    common->queued++;
    pthread_mutex_unlock(&common->lock);
    if (write(common->wake[1], "", 1) < 0)
        exit(1);
}

/* Called within calls on the endpoint, which must not wait: the first certificate is passed to the judge's thread. */
static int32_t verify(void *user, const char *name, const hvq_bytes *chain, size_t count)
{
    shared *common = (shared *)user;
    int32_t answer = HVQ_VERIFY_PENDING;
    if (count == 0 || strcmp(name, "localhost") != 0 || chain[0].length > sizeof common->presented)
        return HVQ_VERIFY_REFUSED;
    pthread_mutex_lock(&common->lock);
    if (common->judged) {
        int same = chain[0].length == common->presented_length &&
                   memcmp(chain[0].data, common->presented, chain[0].length) == 0;
        answer = same && common->verdict ? HVQ_VERIFY_TRUSTED : -42; /* bad_certificate */
    } else if (!common->asked) {
        memcpy(common->presented, chain[0].data, chain[0].length);
        common->presented_length = chain[0].length;
        common->asked = 1;
        pthread_cond_broadcast(&common->changed);
    }
    pthread_mutex_unlock(&common->lock);
    return answer;
}

static void finish(loop *self, int index)
{
    tab *one = &self->tabs[index];
    if (one->over)
        return;
    one->over = 1;
    pthread_mutex_lock(&self->common->lock);
    self->common->finished++;
    self->common->complete += one->complete;
    self->common->cancelled += !one->complete;
    pthread_cond_broadcast(&self->common->changed);
    pthread_mutex_unlock(&self->common->lock);
}

static void open_tab(loop *self, int index)
{
    hvq_connect_options connect;
    memset(&connect, 0, sizeof connect);
    connect.config = self->config;
    connect.server_name = "localhost";
    connect.route.local = self->sockets.addresses[0];
    connect.route.remote = self->remotes[0];
    CHECK(hvq_endpoint_connect(self->endpoint, &connect, net_now(), &self->tabs[index].connection));
    self->tabs[index].started = 1;
}

/* Gives up a tab, whatever it is doing. Calls that come too late fail, and that is all they do. */
static void cancel_tab(loop *self, int index)
{
    tab *one = &self->tabs[index];
    if (plan_of(index) == CANCEL_STREAM) {
        hvq_stream_reset(self->endpoint, one->stream, 1);
        hvq_stream_stop(self->endpoint, one->stream, 1);
    }
    hvq_connection_close(self->endpoint, one->connection, 0, "the tab was closed", net_now());
    finish(self, index);
}

/* Writes until the stream blocks. */
static void send_more(loop *self, tab *one)
{
    static unsigned char block[16384];
    size_t written = 0;
    while (one->sent < BYTES) {
        size_t some = BYTES - one->sent < sizeof block ? BYTES - one->sent : sizeof block;
        if (hvq_stream_write(self->endpoint, one->stream, block, some, &written) != HVQ_OK)
            return;
        one->sent += written;
        if (one->sent == BYTES)
            hvq_stream_finish(self->endpoint, one->stream);
    }
}

static void receive(loop *self, int index)
{
    tab *one = &self->tabs[index];
    hvq_bytes chunk;
    hvq_result result;
    while ((result = hvq_stream_read_chunk(self->endpoint, one->stream, 65536, &chunk)) == HVQ_OK) {
        one->received += chunk.length;
        /* Not at the end, even if all of it is here by now. */
        if (plan_of(index) >= CANCEL_STREAM && one->received > BYTES / 4) {
            cancel_tab(self, index);
            return;
        }
    }
    if (result == HVQ_ERR_END && one->received == BYTES) {
        one->complete = 1;
        hvq_connection_close(self->endpoint, one->connection, 0, NULL, net_now());
        finish(self, index);
    }
}

static void on_event(loop *self, const hvq_event *event)
{
    int index;
    hvq_route second;
    hvq_path path;
    tab *one;
    for (index = 0; index < TABS; index++) {
        if (self->tabs[index].started && self->tabs[index].connection == event->connection)
            break;
    }
    if (index == TABS)
        return;
    one = &self->tabs[index];
    switch (event->kind) {
    case HVQ_EVENT_CONNECTED:
        CHECK(hvq_stream_open(self->endpoint, one->connection, HVQ_BIDIRECTIONAL, &one->stream));
        send_more(self, one);
        break;
    case HVQ_EVENT_PATH_AVAILABLE:
        second.local = self->sockets.addresses[1];
        second.remote = self->remotes[1];
        if (!one->opened_path && hvq_path_open(self->endpoint, one->connection, &second, net_now(), &path) == HVQ_OK)
            one->opened_path = 1;
        break;
    case HVQ_EVENT_STREAM_WRITABLE:
        send_more(self, one);
        break;
    case HVQ_EVENT_STREAM_READABLE:
        receive(self, index);
        break;
    case HVQ_EVENT_CLOSED:
        if (!one->over)
            fprintf(stderr, "tab %d: %.*s\n", index, (int)event->bytes.length, (const char *)event->bytes.data);
        finish(self, index);
        break;
    case HVQ_EVENT_FORGOTTEN:
        one->forgotten = 1;
        break;
    default:
        break;
    }
}

/* Does what other threads asked for. */
static void take_commands(loop *self)
{
    message taken[4 * TABS];
    char drain[256];
    int count, index;
    if (read(self->common->wake[0], drain, sizeof drain) < 0 && errno != EAGAIN)
        exit(1);
    pthread_mutex_lock(&self->common->lock);
    count = self->common->queued;
    memcpy(taken, self->common->queue, sizeof taken);
    self->common->queued = 0;
    pthread_mutex_unlock(&self->common->lock);
    for (index = 0; index < count; index++) {
        int number;
        switch (taken[index].command) {
        case OPEN:
            open_tab(self, taken[index].tab);
            break;
        case CANCEL:
            cancel_tab(self, taken[index].tab);
            break;
        case VERDICT:
            for (number = 0; number < TABS; number++)
                hvq_connection_verify_again(self->endpoint, self->tabs[number].connection, net_now());
            break;
        case QUIT:
            self->quit = 1;
            break;
        }
    }
}

static void *run(void *argument)
{
    loop *self = (loop *)argument;
    while (!self->quit) {
        hvq_output output;
        for (;;) {
            CHECK(hvq_endpoint_poll(self->endpoint, net_now(), &output));
            if (output.kind == HVQ_OUTPUT_TRANSMIT)
                net_send(&self->sockets, self->endpoint, &output.transmit);
            else if (output.kind == HVQ_OUTPUT_EVENT)
                on_event(self, &output.event);
            else
                break;
        }
        net_wait(&self->sockets, output.deadline, self->common->wake[0]);
        take_commands(self);
        net_receive(&self->sockets, self->endpoint);
    }
    return NULL;
}

/* Reads the first certificate of a PEM file. */
static size_t read_pem(const char *name, unsigned char *der, size_t room)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    FILE *file = fopen(name, "r");
    char line[128];
    size_t length = 0;
    unsigned bits = 0, value = 0;
    int inside = 0;
    if (!file) {
        perror(name);
        exit(1);
    }
    while (fgets(line, sizeof line, file)) {
        const char *place, *c = line;
        if (strncmp(line, "-----", 5) == 0) {
            if (inside)
                break;
            inside = 1;
            continue;
        }
        for (; inside && *c && (place = strchr(digits, *c)) != NULL; c++) {
            value = (value << 6 | (unsigned)(place - digits)) & 0xffffff;
            bits += 6;
            if (bits >= 8 && length < room) {
                bits -= 8;
                der[length++] = (unsigned char)(value >> bits);
            }
        }
    }
    fclose(file);
    return length;
}

/* The judge: takes its time, and compares with the certificate that is expected. */
static void judge(shared *common)
{
    struct timespec pause = { 0, 50000000 };
    pthread_mutex_lock(&common->lock);
    while (!common->asked)
        pthread_cond_wait(&common->changed, &common->lock);
    pthread_mutex_unlock(&common->lock);
    nanosleep(&pause, NULL);
    pthread_mutex_lock(&common->lock);
    common->verdict = common->presented_length == common->expected_length &&
                      memcmp(common->presented, common->expected, common->expected_length) == 0;
    common->judged = 1;
    pthread_mutex_unlock(&common->lock);
    post(common, VERDICT, 0);
}

static void set_up(loop *self, shared *common, char **arguments)
{
    static const char *const protocols[] = { "echo" };
    hvq_transport_config transport;
    hvq_client_options options;

    common->expected_length = read_pem(arguments[1], common->expected, sizeof common->expected);
    if (pipe(common->wake) < 0 || fcntl(common->wake[0], F_SETFL, O_NONBLOCK) < 0)
        exit(1);
    self->common = common;
    /* A person may take a while to judge a certificate, and this thread to serve twenty tabs. */
    CHECK(hvq_transport_config_init(&transport, sizeof transport));
    transport.handshake_timeout = 60 * UINT64_C(1000000000);
    CHECK(hvq_client_options_init(&options, sizeof options));
    options.transport = &transport;
    options.alpn = protocols;
    options.alpn_count = 1;
    options.verify = verify;
    options.verify_user = common;
    CHECK(hvq_client_config_new(&options, &self->config));
    CHECK(hvq_endpoint_new(NULL, &self->endpoint));
    CHECK(hvq_address_parse(arguments[2], &self->remotes[0]));
    CHECK(hvq_address_parse(arguments[3], &self->remotes[1]));
    net_bind(&self->sockets, "127.0.0.1:0");
    net_bind(&self->sockets, "127.0.0.2:0");
}

int main(int count, char **arguments)
{
    static shared common;
    static loop self;
    pthread_t thread;
    int index;

    if (count != 4) {
        fprintf(stderr, "usage: browser CERTIFICATE REMOTE REMOTE\n");
        return 2;
    }
    pthread_mutex_init(&common.lock, NULL);
    pthread_cond_init(&common.changed, NULL);
    set_up(&self, &common, arguments);
    if (pthread_create(&thread, NULL, run, &self) != 0)
        return 1;

    for (index = 0; index < TABS; index++) {
        post(&common, OPEN, index);
        if (plan_of(index) == CANCEL_HANDSHAKE)
            post(&common, CANCEL, index);
    }
    judge(&common);

    pthread_mutex_lock(&common.lock);
    while (common.finished < TABS)
        pthread_cond_wait(&common.changed, &common.lock);
    printf("%d tabs: %d complete, %d cancelled; the certificate is %s\n", TABS, common.complete, common.cancelled,
           common.verdict ? "the expected one" : "another one");
    pthread_mutex_unlock(&common.lock);
    post(&common, QUIT, 0);
    pthread_join(thread, NULL);
    /* Connections that still close are gone with the endpoint. */
    CHECK(hvq_endpoint_free(self.endpoint));
    hvq_client_config_free(self.config);
    net_close(&self.sockets);
    close(common.wake[0]);
    close(common.wake[1]);
    return common.complete == TABS / 4 && common.cancelled == TABS - TABS / 4 ? 0 : 1;
}
