/* HCCL between the processes of one machine. Types and numbers: torch_npu/include/third_party/hccl/inc/hccl/hccl_types.h. */
#ifndef NPUPORT_HCCL_H
#define NPUPORT_HCCL_H

#include "queue.h"

#include <stdatomic.h>

typedef int HcclResult;
enum {
    HCCL_SUCCESS = 0,
    HCCL_E_PARA = 1,
    HCCL_E_PTR = 2,
    HCCL_E_MEMORY = 3,
    HCCL_E_INTERNAL = 4,
    HCCL_E_NOT_SUPPORT = 5,
    HCCL_E_NOT_FOUND = 6,
    HCCL_E_UNAVAIL = 7,
    HCCL_E_SYSCALL = 8,
    HCCL_E_TIMEOUT = 9,
    HCCL_E_OPEN_FILE_FAILURE = 10,
    HCCL_E_REMOTE = 21,
    HCCL_E_SUSPENDING = 22,
};
enum { INT8, INT16, INT32, FP16, FP32, INT64, UINT64, UINT8, UINT16, UINT32, FP64, BFP16 };
enum { SUM, PROD, MAX, MIN };

enum {
    MAX_RANKS = 64,
    SLOT_BYTES = 1 << 19, /* each rank has two */
    MAX_CHILDREN = 4096,
    NAME_BYTES = 128,
    ROOT_INFO_BYTES = 4108,
};

typedef struct { int32_t process; uint64_t started; } Process; /* started tells it from a later process of the same number */

/* Where the memory of a communicator is to be had: a file without a name, which a process holds open. */
typedef struct { Process holder; int32_t file; } Place;

typedef enum {
    ALL_REDUCE = 1, REDUCE, REDUCE_SCATTER, REDUCE_SCATTER_V, ALL_GATHER, ALL_GATHER_V, BROADCAST, BARRIER, /* all ranks see all data */
    SCATTER, SEND, RECEIVE, ALL_TO_ALL, BATCH_SEND_RECEIVE, /* messages between two ranks */
} Kind;

/* What every rank of a call must say alike. */
typedef struct { uint32_t kind; int32_t type, operation; uint32_t root; uint64_t count; } Terms;

typedef struct { _Atomic int32_t process; uint64_t started; _Atomic bool left; } Member; /* process: 0 not yet there */
typedef struct { _Atomic uint32_t sent; uint64_t first; } Channel;  /* messages so far, and where the first one is */
typedef struct { uint64_t id, members; _Atomic uint32_t taken, ready; Place place; } Child; /* a communicator of some of the ranks */

/* What the ranks of one communicator share. The slots follow it in the same file, and after them the messages. */
typedef struct {
    _Atomic uint32_t attached, arrived, generation, failed, children;
    _Atomic uint64_t end; /* of the messages in the file */
    char failure[FAILURE_TEXT];
    Member members[MAX_RANKS];
    Terms terms[2][MAX_RANKS];
    Channel channels[MAX_RANKS][MAX_RANKS]; /* from, to */
    Child child[MAX_CHILDREN];
} Segment;

typedef struct Comm {
    struct Comm* next; /* of those this process has not destroyed yet */
    Segment* segment;
    char* slots;
    size_t bytes; /* mapped */
    int file;
    uint32_t ranks, rank, phase; /* phase: which of the two slots is next */
    int32_t owner;               /* the process that joined; a forked child leaves nothing on its behalf */
    uint32_t received[MAX_RANKS];
    uint64_t last_sent[MAX_RANKS], last_received[MAX_RANKS]; /* places of messages */
    double limit_ms;
    char name[NAME_BYTES];
    uint64_t issued, done; /* calls; they run in the order of their numbers, whatever their streams */
    uint32_t references;   /* the owner's and one of each call */
    _Atomic bool closing, suspended;
    _Atomic int error;
    char error_text[FAILURE_TEXT];
} Comm;

static inline char* npuport_slot(const Comm* comm, uint32_t rank) { return comm->slots + ((size_t)rank * 2 + comm->phase) * SLOT_BYTES; }

/* hccl_segment.c */
HcclResult npuport_new_place(Place* place);
HcclResult npuport_attach(Comm* comm, const Place* place, uint32_t ranks, uint32_t rank);
HcclResult npuport_await_others(Comm* comm);
void npuport_detach(Comm* comm);
void npuport_leave(Comm* comm);
bool npuport_is_running(const Process* process);
Process npuport_this_process(void);
void npuport_announce_failure(Comm* comm, const char* text);
HcclResult npuport_await(Comm* comm, _Atomic uint32_t* word, uint32_t old, int peer, double limit_ms, const char* what);
void npuport_wake(_Atomic uint32_t* word);
HcclResult npuport_barrier(Comm* comm);
double npuport_limit_ms(const char* variable, double seconds);

/* hccl_message.c */
HcclResult npuport_send(Comm* comm, const void* data, size_t bytes, uint32_t to);
HcclResult npuport_receive(Comm* comm, void* data, size_t bytes, uint32_t from);

/* hccl_reduce.c */
size_t npuport_element_bytes(int type); /* 0: unknown */
HcclResult npuport_check_chip(const char* name, int type, int operation);
HcclResult npuport_combine(void* into, const void* from, size_t count, int type, int operation);

typedef struct { int kind; void* data; uint64_t count; int type; uint32_t remote; } SendReceive; /* kind: 0 send, 1 receive */

/* One call of HCCL as it waits in a stream. */
typedef struct Call {
    struct Call* next; /* of a group */
    Comm* comm;
    Stream* stream;
    uint64_t number;
    Terms terms;
    const void* in;
    void* out;
    uint64_t share;                                     /* elements of this rank where ranks may differ */
    uint64_t *sent, *sent_at, *received, *received_at;  /* per rank, in elements */
    int received_type;
    uint32_t items;
    SendReceive* batch;
} Call;

/* hccl_collectives.c */
HcclResult npuport_perform(Call* call);
const char* npuport_kind_name(Kind kind);

/* hccl_meeting.c */
HcclResult npuport_child_place(Comm* parent, uint64_t id, const uint32_t* members, uint32_t ranks, uint32_t rank, Place* place);
HcclResult npuport_table_place(const char* path, uint32_t* ranks, Place* place);

/* hccl_communicator.c */
void npuport_release_comm(Comm* comm); /* with the lock held */

#endif
