/* Messages from one rank to another lie behind the slots in the shared file, each with its place in it for good; when it is fetched, its
 * memory is given back. A message is written before it is announced, so a send never waits for its receiver. */
#include "hccl.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

enum { PAGE = 4096 };
typedef struct { uint64_t bytes, next; } Head; /* next: the place of the following message on the same way, written when there is one */

static bool write_all(int file, const char* data, size_t bytes, uint64_t at) {
    while (bytes) {
        ssize_t done = pwrite(file, data, bytes, (off_t)at);
        if (done <= 0) return false;
        data += done, at += (uint64_t)done, bytes -= (size_t)done;
    }
    return true;
}

static bool read_all(int file, char* data, size_t bytes, uint64_t at) {
    while (bytes) {
        ssize_t done = pread(file, data, bytes, (off_t)at);
        if (done <= 0) return false;
        data += done, at += (uint64_t)done, bytes -= (size_t)done;
    }
    return true;
}

static void give_back(int file, uint64_t at, uint64_t bytes) {
    if (bytes) fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)at, (off_t)bytes);
}

HcclResult npuport_send(Comm* comm, const void* data, size_t bytes, uint32_t to) {
    Channel* channel = &comm->segment->channels[comm->rank][to];
    uint64_t room = (sizeof(Head) + bytes + PAGE - 1) / PAGE * PAGE, at = atomic_fetch_add(&comm->segment->end, room);
    Head head = {bytes, 0};
    bool written = write_all(comm->file, (const char*)&head, sizeof head, at) && write_all(comm->file, data, bytes, at + sizeof head);
    if (atomic_load(&channel->sent) == 0) channel->first = at;
    else written = written && write_all(comm->file, (const char*)&at, sizeof at, comm->last_sent[to] + offsetof(Head, next));
    if (!written) return npuport_fail(HCCL_E_MEMORY, "HCCL communicator %s: no memory for a message of %zu bytes: %s", comm->name, bytes, strerror(errno));
    comm->last_sent[to] = at;
    atomic_fetch_add(&channel->sent, 1);
    npuport_wake(&channel->sent);
    return HCCL_SUCCESS;
}

/* The place of the next message; the page of the one before was kept until now, for it tells. */
static bool next_place(Comm* comm, uint32_t from, uint64_t* at) {
    if (comm->received[from] == 0) return *at = comm->segment->channels[from][comm->rank].first, true;
    uint64_t before = comm->last_received[from];
    bool known = read_all(comm->file, (char*)at, sizeof *at, before + offsetof(Head, next));
    give_back(comm->file, before, PAGE);
    return known;
}

HcclResult npuport_receive(Comm* comm, void* data, size_t bytes, uint32_t from) {
    char what[64];
    snprintf(what, sizeof what, "waiting for a message from rank %u", from);
    HcclResult error = npuport_await(comm, &comm->segment->channels[from][comm->rank].sent, comm->received[from], (int)from, comm->limit_ms, what);
    if (error) return error;
    uint64_t at;
    Head head;
    if (!next_place(comm, from, &at) || !read_all(comm->file, (char*)&head, sizeof head, at))
        return npuport_fail(HCCL_E_INTERNAL, "HCCL communicator %s: the message from rank %u cannot be read: %s", comm->name, from, strerror(errno));
    bool complete = head.bytes == bytes && read_all(comm->file, data, bytes, at + sizeof head);
    give_back(comm->file, at + PAGE, head.bytes + sizeof head > PAGE ? head.bytes + sizeof head - PAGE : 0);
    comm->last_received[from] = at;
    comm->received[from]++;
    if (complete) return HCCL_SUCCESS;
    return npuport_fail(HCCL_E_PARA, "HCCL communicator %s: rank %u sent %llu bytes and rank %u expects %zu", comm->name, from, (unsigned long long)head.bytes, comm->rank, bytes);
}
