/* HCCL between the processes of one machine. Types and numbers: torch_npu/include/third_party/hccl/inc/hccl/hccl_types.h. */
#ifndef NPUPORT_HCCL_H
#define NPUPORT_HCCL_H

#include "stand_in.h"

#include <stdatomic.h>

typedef int HcclResult;
enum {
    HCCL_SUCCESS = 0,
    HCCL_E_PARA = 1,
    HCCL_E_NOT_SUPPORT = 5,
    HCCL_E_UNAVAIL = 7,
    HCCL_E_SYSCALL = 8,
    HCCL_E_TIMEOUT = 9,
    HCCL_E_REMOTE = 21,
};
enum { MAX_RANKS = 64, SLOT_BYTES = 1 << 20, PATH_BYTES = 256, NAME_BYTES = 128 };

/* What the ranks of one communicator share. A slot per rank follows it in the same file. */
typedef struct {
    _Atomic uint32_t attached, arrived, generation;
    _Atomic int32_t process[MAX_RANKS];
    _Atomic uint32_t sent[MAX_RANKS][MAX_RANKS]; /* messages from rank to rank */
} Segment;

typedef struct Comm {
    struct Comm* next; /* of those this process has not destroyed yet */
    Segment* segment;
    char* slots;
    uint32_t ranks, rank;
    int32_t owner; /* the process that joined; a forked child leaves nothing on its behalf */
    uint32_t received[MAX_RANKS];
    char directory[PATH_BYTES];
    char name[NAME_BYTES];
} Comm;

/* hccl_channel.c */
HcclResult npuport_attach(Comm* comm, const char* directory, uint32_t ranks, uint32_t rank);
void npuport_detach(Comm* comm);
HcclResult npuport_barrier(Comm* comm);
HcclResult npuport_send(Comm* comm, const void* data, size_t bytes, uint32_t to);
HcclResult npuport_receive(Comm* comm, void* data, size_t bytes, uint32_t from);
static inline char* npuport_slot(const Comm* comm, uint32_t rank) { return comm->slots + (size_t)rank * SLOT_BYTES; }

/* hccl_reduce.c */
size_t npuport_element_bytes(int type); /* 0: unknown */
HcclResult npuport_combine(void* into, const void* from, size_t count, int type, int operation);

#endif
