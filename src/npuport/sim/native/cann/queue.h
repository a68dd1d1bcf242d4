/* Streams as queues. Operators compute when they are called, so a stream is mostly idle; what waits for other processes (communication) runs
 * on a thread of its stream, and whatever comes after it in that stream, or waits for an event of it, comes after it here too. */
#ifndef NPUPORT_QUEUE_H
#define NPUPORT_QUEUE_H

#include "stand_in.h"

enum { FAILURE_TEXT = 768 };

typedef struct { aclError code; char text[FAILURE_TEXT]; } Failure; /* code 0: none */

typedef struct Task {
    struct Task* next;
    aclError (*run)(void* argument); /* frees what it was given */
    void* argument;
} Task;

typedef struct Stream {
    struct Stream* next; /* of all streams */
    int32_t id;
    int device;
    uint32_t overflow_switch;
    Task *first, *last;
    uint64_t submitted, finished;
    bool has_worker, closing;
    Failure failure; /* of a task, until somebody who waits for the stream is told */
} Stream;

Stream* npuport_stream(void* handle);
Stream* npuport_new_stream(void);
void npuport_delete_stream(Stream* stream);

/* Run the task after all that is in the stream: on the stream's thread, or at once if nothing is there and the task itself never waits. */
aclError npuport_submit(Stream* stream, aclError (*run)(void*), void* argument);
aclError npuport_follow(Stream* stream, aclError (*run)(void*), void* argument);

/* Wait until the stream has done what it was given, at most `limit_ms` (negative: without end), and return how that failed if it did. */
aclError npuport_drain(Stream* stream, double limit_ms);
aclError npuport_drain_device(int device, double limit_ms);
void npuport_forget_failures(void);

/* The one lock of streams, events and communicators, and the one signal that something under it has changed. */
void npuport_lock(void);
void npuport_unlock(void);
bool npuport_wait_changed(double until_ms); /* false: it is past `until_ms` (0: no end) */
void npuport_changed(void);

/* With the lock held. */
bool npuport_is_idle(const Stream* stream);
void npuport_submit_locked(Stream* stream, aclError (*run)(void*), void* argument);
void npuport_fail_stream(Stream* stream, const Failure* failure);

/* hccl_calls.c */
bool npuport_holds(const Stream* stream);

#endif
