/* Loops over calls of the CUDA driver, and over flags in memory, timed without Python in between.

   No header of CUDA is needed: the driver's functions come as addresses. Handles and addresses of
   the GPU are 64 bits wide. A function returns 0, the driver's error, or -1 after a time limit. */

#include <stddef.h>
#include <stdint.h>
#include <time.h>

typedef int launch_function(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                            unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                            void *stream, void **arguments, void **extra);
typedef int graph_function(void *graph, void *stream);
typedef int wait_function(void *stream);

enum kind { LAUNCH, GRAPH, WAIT };

struct action {
    uint32_t kind, grid, block, reserved;
    void *call;     /* the driver's function */
    void *object;   /* kernel or graph */
    void *stream;
    void **arguments;
};

size_t action_size(void) { return sizeof(struct action); }

static double microseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return 1e6 * (double)now.tv_sec + 1e-3 * (double)now.tv_nsec;
}

static int perform(const struct action *a) {
    switch (a->kind) {
    case LAUNCH:
        return ((launch_function *)a->call)(a->object, a->grid, 1, 1, a->block, 1, 1, 0, a->stream,
                                            a->arguments, NULL);
    case GRAPH:
        return ((graph_function *)a->call)(a->object, a->stream);
    default:
        return ((wait_function *)a->call)(a->stream);
    }
}

static int await(const volatile uint32_t *flag, uint32_t value, double limit) {
    /* The clock is read now and then: it takes longer than a look at the flag. */
    for (unsigned looks = 0; __atomic_load_n(flag, __ATOMIC_ACQUIRE) != value; ++looks)
        if (looks % 1024 == 1023 && microseconds() > limit) return -1;
    return 0;
}

/* Performs `actions` in order, `count` times; `us` is the time of one round. */
int row(const struct action *actions, int actions_count, int count, double *us) {
    const double start = microseconds();
    for (int i = 0; i < count; ++i)
        for (int j = 0; j < actions_count; ++j) {
            const int error = perform(&actions[j]);
            if (error) return error;
        }
    *us = (microseconds() - start) / count;
    return 0;
}

/* Performs one action; `call_us` until the call returns, `seen_us` until `flag` has `value`. */
int until(const struct action *action, volatile uint32_t *flag, uint32_t value, double limit_us,
          double *call_us, double *seen_us) {
    const double start = microseconds();
    const int error = perform(action);
    if (error) return error;
    *call_us = microseconds() - start;
    const int late = await(flag, value, start + limit_us);
    *seen_us = microseconds() - start;
    return late;
}

/* Rings `bell` with one store; `us` until `reply` has `value`. */
int ring(volatile uint64_t *bell, uint64_t what, volatile uint32_t *reply, uint32_t value,
         double limit_us, double *us) {
    const double start = microseconds();
    __atomic_store_n(bell, what, __ATOMIC_RELEASE);
    const int late = await(reply, value, start + limit_us);
    *us = microseconds() - start;
    return late;
}

/* The words of a graph's mini-batches are as far apart as lines of the cache. */
enum { APART = 16, MOST_LANES = 64 };

static void fill(uint32_t *words, int count, uint32_t value) {
    for (int i = 0; i < count; ++i) __atomic_store_n(&words[APART * i], value, __ATOMIC_RELEASE);
}

static int all_set(const uint32_t *words, int count) {
    for (int i = 0; i < count; ++i)
        if (!__atomic_load_n(&words[APART * i], __ATOMIC_ACQUIRE)) return 0;
    return 1;
}

/* Launches `rounds` graphs, each when the one `lanes` before has ended, and plays the NIC: a graph's
   `branches` words are stored `answer_us` after its launch; below 0, they are left as they are. A
   graph has ended when its `dones` are set; they are reset then, and its words. `us` is the time of
   a graph while `lanes` of them are under way. -1 after `limit_us` without an end, -2 for what there
   is no room or no time to measure, -3 for a graph that ends before its words are there. */
int turns(const struct action *graphs, int lanes, uint32_t *words, uint32_t *dones, int branches,
          int rounds, double answer_us, double limit_us, double *us) {
    double launched_at[MOST_LANES], begun = 0, last = microseconds();
    int launched = 0, answered = 0, ended = 0;
    if (lanes < 1 || lanes > MOST_LANES || rounds <= 2 * lanes) return -2;
    while (ended < rounds) {
        const double now = microseconds();
        if (now > last + limit_us) return -1;
        if (answered < launched && now >= launched_at[answered % lanes] + answer_us) {
            if (answer_us >= 0) fill(words + APART * branches * (answered % lanes), branches, 1);
            ++answered;
        }
        uint32_t *done = dones + APART * branches * (ended % lanes);
        if (ended < launched && all_set(done, branches)) {
            if (ended == answered) return -3;
            fill(done, branches, 0);
            if (answer_us >= 0) fill(words + APART * branches * (ended % lanes), branches, 0);
            last = now;
            ++ended;
            if (ended == lanes) begun = now;
            if (ended == rounds - lanes) *us = (now - begun) / (rounds - 2 * lanes);
        }
        if (launched < rounds && launched < ended + lanes) {
            const int error = perform(&graphs[launched % lanes]);
            if (error) return error;
            launched_at[launched++ % lanes] = microseconds();
        }
    }
    return 0;
}
