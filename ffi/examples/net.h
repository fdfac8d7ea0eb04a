/* UDP sockets for the examples: bind, send what an endpoint says, pass on what arrives, wait. POSIX only. */
#ifndef NET_H
#define NET_H

#define _POSIX_C_SOURCE 200809L

#include <errno.h>
#include <fcntl.h>
#include <hvq.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define NET_SOCKETS 4

/* Ends the program if a call of the library fails. */
#define CHECK(call) net_check((call), #call)

typedef struct net {
    int sockets[NET_SOCKETS];
    hvq_address addresses[NET_SOCKETS];
    size_t count;
} net;

static inline void net_check(hvq_result result, const char *call)
{
    char text[256];
    if (result == HVQ_OK)
        return;
    hvq_last_error(text, sizeof text);
    fprintf(stderr, "%s: %s: %s\n", call, hvq_error_name(result), text);
    exit(1);
}

/* The library's time: nanoseconds of the monotonic clock. */
static inline uint64_t net_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Binds a socket to an address such as "127.0.0.1:4433" and returns its index; port 0 is any. */
static inline size_t net_bind(net *sockets, const char *address)
{
    struct sockaddr_storage place;
    socklen_t size = sizeof place;
    size_t length;
    size_t index = sockets->count++;
    hvq_address wanted;
    int fd;

    CHECK(hvq_address_parse(address, &wanted));
    CHECK(hvq_address_to_sockaddr(&wanted, &place, sizeof place, &length));
    fd = socket(place.ss_family, SOCK_DGRAM, 0);
    if (index >= NET_SOCKETS || fd < 0 || fcntl(fd, F_SETFL, O_NONBLOCK) < 0 ||
        bind(fd, (struct sockaddr *)&place, (socklen_t)length) < 0 ||
        getsockname(fd, (struct sockaddr *)&place, &size) < 0) {
        perror(address);
        exit(1);
    }
    CHECK(hvq_address_from_sockaddr(&place, size, &sockets->addresses[index]));
    sockets->sockets[index] = fd;
    return index;
}

static inline void net_close(net *sockets)
{
    while (sockets->count > 0)
        close(sockets->sockets[--sockets->count]);
}

static inline int net_same(const hvq_address *a, const hvq_address *b)
{
    return a->family == b->family && a->port == b->port && memcmp(a->ip, b->ip, sizeof a->ip) == 0;
}

/* Sends what the endpoint said. What a socket does not take is lost, as it may be on any network. */
static inline void net_send(net *sockets, hvq_endpoint *endpoint, const hvq_transmit *transmit)
{
    struct sockaddr_storage place;
    size_t length, index, offset = 0;
    size_t step = transmit->segment ? transmit->segment : transmit->length;

    CHECK(hvq_address_to_sockaddr(&transmit->route.remote, &place, sizeof place, &length));
    for (index = 0; index < sockets->count; index++) {
        if (net_same(&sockets->addresses[index], &transmit->route.local))
            break;
    }
    while (index < sockets->count && offset < transmit->length) {
        size_t size = transmit->length - offset < step ? transmit->length - offset : step;
        ssize_t sent = sendto(sockets->sockets[index], transmit->bytes + offset, size, 0, (struct sockaddr *)&place,
                              (socklen_t)length);
        if (sent < 0 && errno == EMSGSIZE)
            CHECK(hvq_endpoint_refused(endpoint, &transmit->route, size, net_now()));
        offset += size;
    }
}

/* Passes on everything that has arrived. */
static inline void net_receive(net *sockets, hvq_endpoint *endpoint)
{
    unsigned char buffer[65536];
    size_t index;

    for (index = 0; index < sockets->count; index++) {
        for (;;) {
            struct sockaddr_storage from;
            socklen_t size = sizeof from;
            hvq_incoming incoming;
            ssize_t count =
                recvfrom(sockets->sockets[index], buffer, sizeof buffer, 0, (struct sockaddr *)&from, &size);
            if (count < 0)
                break;
            memset(&incoming, 0, sizeof incoming);
            incoming.route.local = sockets->addresses[index];
            CHECK(hvq_address_from_sockaddr(&from, size, &incoming.route.remote));
            incoming.bytes = buffer;
            incoming.length = (size_t)count;
            CHECK(hvq_endpoint_handle(endpoint, &incoming, net_now()));
        }
    }
}

/* Waits until something arrives, `extra` (unless it is -1) is readable, or the deadline passes. */
static inline void net_wait(net *sockets, uint64_t deadline, int extra)
{
    struct pollfd polled[NET_SOCKETS + 1];
    uint64_t now = net_now();
    size_t index;
    int timeout = -1;

    if (deadline <= now)
        timeout = 0;
    else if (deadline != HVQ_NEVER)
        timeout = (int)((deadline - now > 1000000000000u ? 1000000000000u : deadline - now) / 1000000 + 1);
    for (index = 0; index < sockets->count; index++) {
        polled[index].fd = sockets->sockets[index];
        polled[index].events = POLLIN;
    }
    polled[index].fd = extra;
    polled[index].events = POLLIN;
    if (poll(polled, (nfds_t)(sockets->count + 1), timeout) < 0 && errno != EINTR) {
        perror("poll");
        exit(1);
    }
}

#endif
