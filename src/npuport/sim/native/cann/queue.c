#include "queue.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed;
static Stream defaults[MAX_DEVICES];
static Stream* streams = NULL;
static int32_t next_id = 1;

/* Tasks not done plus failures not told. While it is 0, which is nearly always, nobody needs the lock. */
static _Atomic int unsettled;

static void forget_tasks(Stream* stream) {
    stream->first = NULL;
    stream->finished = stream->submitted;
    stream->has_worker = false;
    stream->failure.code = 0;
}

/* A forked child has none of its parent's threads, so nothing is under way in it. */
static void start_as_child(void) {
    pthread_mutex_init(&lock, NULL);
    for (int device = 0; device < MAX_DEVICES; device++) forget_tasks(&defaults[device]);
    for (Stream* stream = streams; stream; stream = stream->next) forget_tasks(stream);
    unsettled = 0;
}

static __attribute__((constructor)) void prepare(void) {
    pthread_atfork(npuport_lock, npuport_unlock, start_as_child);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&changed, &attributes);
    for (int device = 0; device < MAX_DEVICES; device++) defaults[device].device = device;
}

void npuport_lock(void) { pthread_mutex_lock(&lock); }
void npuport_unlock(void) { pthread_mutex_unlock(&lock); }
void npuport_changed(void) { pthread_cond_broadcast(&changed); }

bool npuport_wait_changed(double until_ms) {
    if (until_ms <= 0) return pthread_cond_wait(&changed, &lock) == 0;
    struct timespec until = {(time_t)(until_ms / 1e3), 0};
    until.tv_nsec = (long)((until_ms - (double)until.tv_sec * 1e3) * 1e6);
    return pthread_cond_timedwait(&changed, &lock, &until) != ETIMEDOUT;
}

Stream* npuport_stream(void* handle) {
    int device = npuport_current_device();
    return handle ? handle : &defaults[device < 0 ? 0 : device];
}

Stream* npuport_new_stream(void) {
    Stream* stream = calloc(1, sizeof *stream);
    int device = npuport_current_device();
    stream->device = device < 0 ? 0 : device;
    npuport_lock();
    stream->id = next_id++;
    stream->next = streams;
    streams = stream;
    npuport_unlock();
    return stream;
}

void npuport_delete_stream(Stream* stream) {
    npuport_lock();
    for (Stream** at = &streams; *at; at = &(*at)->next)
        if (*at == stream) {
            *at = stream->next;
            break;
        }
    if (stream->failure.code) unsettled--;
    stream->failure.code = 0;
    stream->closing = true;
    bool has_worker = stream->has_worker; /* which frees the stream when the last task is done */
    npuport_changed();
    npuport_unlock();
    if (!has_worker) free(stream);
}

bool npuport_is_idle(const Stream* stream) { return stream->finished == stream->submitted; }

void npuport_fail_stream(Stream* stream, const Failure* failure) {
    if (!failure->code || stream->failure.code) return; /* the first failure is the cause of the others */
    stream->failure = *failure;
    unsettled++;
    npuport_changed();
}

static void* work(void* argument) {
    Stream* stream = argument;
    aclrtSetDevice(stream->device);
    npuport_lock();
    while (stream->first || !stream->closing) {
        Task* task = stream->first;
        if (!task) {
            npuport_wait_changed(0);
            continue;
        }
        stream->first = task->next;
        npuport_unlock();
        Failure failure = {.code = task->run(task->argument)};
        if (failure.code) snprintf(failure.text, sizeof failure.text, "%s", aclGetRecentErrMsg());
        free(task);
        npuport_lock();
        stream->finished++;
        npuport_fail_stream(stream, &failure);
        unsettled--;
        npuport_changed();
    }
    npuport_unlock();
    free(stream);
    return NULL;
}

void npuport_submit_locked(Stream* stream, aclError (*run)(void*), void* argument) {
    Task* task = malloc(sizeof *task);
    *task = (Task){NULL, run, argument};
    if (stream->first) stream->last->next = task;
    else stream->first = task;
    stream->last = task;
    stream->submitted++;
    unsettled++;
    if (!stream->has_worker) {
        pthread_t thread;
        pthread_create(&thread, NULL, work, stream);
        pthread_detach(thread);
        stream->has_worker = true;
    }
    npuport_changed();
}

aclError npuport_submit(Stream* stream, aclError (*run)(void*), void* argument) {
    npuport_lock();
    npuport_submit_locked(stream, run, argument);
    npuport_unlock();
    return ACL_SUCCESS;
}

aclError npuport_follow(Stream* stream, aclError (*run)(void*), void* argument) {
    if (unsettled) {
        npuport_lock();
        bool queued = !npuport_is_idle(stream);
        if (queued) npuport_submit_locked(stream, run, argument);
        npuport_unlock();
        if (queued) return ACL_SUCCESS;
    }
    return run(argument);
}

/* With the lock held. */
static aclError drain(Stream* stream, double until_ms, Failure* failure) {
    uint64_t target = stream->submitted;
    while (stream->finished < target)
        if (!npuport_wait_changed(until_ms) && stream->finished < target) return ACL_ERROR_RT_STREAM_SYNC_TIMEOUT;
    if (stream->failure.code) {
        if (!failure->code) *failure = stream->failure;
        stream->failure.code = 0; /* told once: a program may save its state and go on without the others */
        unsettled--;
    }
    return ACL_SUCCESS;
}

static aclError told(aclError error, const Failure* failure) {
    if (error) return npuport_fail(error, "the stream is still waiting for a communication");
    return failure->code ? npuport_fail(failure->code, "%s", failure->text) : ACL_SUCCESS;
}

aclError npuport_drain(Stream* stream, double limit_ms) {
    if (!unsettled) return ACL_SUCCESS;
    Failure failure = {0};
    npuport_lock();
    aclError error = drain(stream, limit_ms < 0 ? 0 : npuport_now_ms() + limit_ms, &failure);
    npuport_unlock();
    return told(error, &failure);
}



static bool is_busy(int device) {
    bool busy = !npuport_is_idle(&defaults[device]);
    for (const Stream* stream = streams; stream && !busy; stream = stream->next) busy = stream->device == device && !npuport_is_idle(stream);
    return busy;
}

aclError npuport_drain_device(int device, double limit_ms) {
    if (!unsettled || device < 0) return ACL_SUCCESS;
    Failure failure = {0};
    aclError error = ACL_SUCCESS;
    double until = limit_ms < 0 ? 0 : npuport_now_ms() + limit_ms;
    npuport_lock();
    while (is_busy(device) && !error)
        if (!npuport_wait_changed(until) && is_busy(device)) error = ACL_ERROR_RT_STREAM_SYNC_TIMEOUT;
    if (!error) drain(&defaults[device], 0, &failure);
    for (Stream* stream = streams; stream && !error; stream = stream->next)
        if (stream->device == device) drain(stream, 0, &failure);
    npuport_unlock();
    return told(error, &failure);
}

void npuport_forget_failures(void) {
    npuport_lock();
    for (Stream* stream = streams; stream; stream = stream->next)
        if (stream->failure.code) {
            stream->failure.code = 0;
            unsettled--;
        }
    npuport_unlock();
}

/* Asked by the kernels of operators before they touch device memory on the host; 0 or the error of something earlier in the stream. */
aclError npuport_settle(void* handle) {
    Stream* stream = npuport_stream(handle);
    return !unsettled || npuport_holds(stream) ? ACL_SUCCESS : npuport_drain(stream, -1);
}

const _Atomic int* npuport_unsettled(void) { return &unsettled; }
