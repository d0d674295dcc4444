; Worker threads that take parts of a kernel's THREAD axis, and the loop that runs a list of calls.
;
; Each thread (0 is the caller) has a range of a job's parts, the same share of every job: so whoever walks through the
; same memory again finds in its caches what it left there. Cores may have no cache in common, and what lies in another's
; is further away than memory. A thread goes through its range from one end, in every second job from the other: it
; begins with what it did last, which is still there where all of its share is not. When its range is done, it helps the
; others, each from the end that that one comes to last.
;
; A range is a word: the job's number (high 32 bits), the end (16 bits) and the start (16 bits) of what nobody has
; taken. A part is taken by a compare-and-swap of the whole word, so a late worker can never take a part of another job,
; and none of one whose ranges are empty. The caller fills in a job while all are, opens them, takes parts itself until
; none is left, and waits until all are done. Nobody is missed:
;
; - A worker with nothing to do spins a little, then sleeps: it counts itself among `sleepers` and looks at its range once
;   more, holding the mutex until it waits. The caller opens the ranges and then looks at `sleepers`. All four are
;   sequentially consistent, so one sees the other; and the caller's broadcast needs the mutex, so it comes after the wait.
; - A caller whose parts others still do spins a little, then sleeps in the same way: it sets `waiting` and looks at
;   `done`; the worker that does the last part counts it in `done` and looks at `waiting`.
;
; Workers keep off the core on which the caller is. A system may wake a worker there, though another core sleeps (one with
; few cores awake takes less power, or less of a host); and since the caller does what nobody else does, a worker that
; waits there for its turn finds nothing left to do, so there is never load enough to move it. So the caller bars its
; core to those whom it wakes, and a worker that comes to do a part there leaves it. A worker is barred from one core at a
; time, and only where it is allowed another.
;
; Workers start with the first job that has parts for them. After a fork the child has none: `pool_init` there makes
; everything new, and the next job starts them.

@ranges = internal global [MAX_WORKERS x [16 x i64]] zeroinitializer, align 128  ; a pair of cache lines for each
@job = internal global i64 0, align 128
@done = internal global i64 0, align 128
@waiting = internal global i64 0
@entry = internal global ptr null, align 128
@table = internal global ptr null
@extent = internal global i64 0
@parts = internal global i64 0
@members = internal global i64 0  ; threads that have a range
@busy = internal global i64 0, align 128
@sleepers = internal global i64 0, align 128
@stopping = internal global i64 0
@wanted = internal global i64 0
@started = internal global i64 0
@spins = internal global i64 0
@mutex = internal global [128 x i8] zeroinitializer, align 128
@wake = internal global [128 x i8] zeroinitializer, align 128
@finished = internal global [128 x i8] zeroinitializer, align 128
@core = internal global i32 -1, align 128  ; where the caller of the job was when it began
@barred = internal global [MAX_WORKERS x i32] zeroinitializer, align 128  ; from which core each worker is kept
@allowed = internal global [16 x i64] zeroinitializer, align 128  ; the cores on which the pool may be, a bit for each
@handles = internal global [MAX_WORKERS x i64] zeroinitializer, align 128

declare i32 @pthread_mutex_init(ptr, ptr)
declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @pthread_cond_init(ptr, ptr)
declare i32 @pthread_cond_wait(ptr, ptr)
declare i32 @pthread_cond_broadcast(ptr)
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_join(i64, ptr)
declare i64 @pthread_self()

; Keeps a worker off `core`, unless it is kept off it already, or may be nowhere else.
define internal void @keep_off(i64 %worker, i64 %handle, i32 %core) {
begin:
  %mask = alloca [16 x i64], align 8
  %place = getelementptr i32, ptr @barred, i64 %worker
  %now = load atomic i32, ptr %place monotonic, align 4
  %kept = icmp eq i32 %now, %core
  %known = icmp ult i32 %core, 1024
  %not_kept = xor i1 %kept, true
  %wanted = and i1 %known, %not_kept
  br i1 %wanted, label %each, label %leave
each:
  %i = phi i32 [ 0, %begin ], [ %next, %each ]
  %any = phi i64 [ 0, %begin ], [ %more, %each ]
  %from = getelementptr i64, ptr @allowed, i32 %i
  %word = load i64, ptr %from, align 8
  %word_of_core = lshr i32 %core, 6
  %here = icmp eq i32 %i, %word_of_core
  %in_word = and i32 %core, 63
  %shift = zext i32 %in_word to i64
  %bit = shl i64 1, %shift
  %others = xor i64 %bit, -1
  %without = and i64 %word, %others
  %kept_word = select i1 %here, i64 %without, i64 %word
  %to = getelementptr i64, ptr %mask, i32 %i
  store i64 %kept_word, ptr %to, align 8
  %more = or i64 %any, %kept_word
  %next = add i32 %i, 1
  %left = icmp ult i32 %next, 16
  br i1 %left, label %each, label %decide
decide:
  %some = icmp ne i64 %more, 0
  br i1 %some, label %bar, label %leave
bar:
  store atomic i32 %core, ptr %place monotonic, align 4
  %failed = call i32 @pthread_setaffinity_np(i64 %handle, i64 128, ptr %mask)
  br label %leave
leave:
  ret void
}

; Keeps every worker that has started off `core`.
define internal void @keep_all_off(i32 %core) {
begin:
  %workers = load i64, ptr @started, align 8
  br label %each
each:
  %number = phi i64 [ 0, %begin ], [ %next, %one ]
  %more = icmp ult i64 %number, %workers
  br i1 %more, label %one, label %leave
one:
  %at = getelementptr i64, ptr @handles, i64 %number
  %handle = load i64, ptr %at, align 8
  call void @keep_off(i64 %number, i64 %handle, i32 %core)
  %next = add i64 %number, 1
  br label %each
leave:
  ret void
}

define internal ptr @range_of(i64 %thread) alwaysinline {
  %range = getelementptr [16 x i64], ptr @ranges, i64 %thread
  ret ptr %range
}

; A pool of `workers` that spin `spins` times before they sleep; nothing runs yet.
define void @pool_init(i64 %workers, i64 %spins) {
begin:
  %m = call i32 @pthread_mutex_init(ptr @mutex, ptr null)
  %w = call i32 @pthread_cond_init(ptr @wake, ptr null)
  %f = call i32 @pthread_cond_init(ptr @finished, ptr null)
  store i64 0, ptr @job, align 8
  store atomic i64 0, ptr @done seq_cst, align 8
  store atomic i64 0, ptr @waiting seq_cst, align 8
  store atomic i64 0, ptr @busy seq_cst, align 8
  store atomic i64 0, ptr @sleepers seq_cst, align 8
  store i64 %workers, ptr @wanted, align 8
  store i64 0, ptr @started, align 8
  store i64 %spins, ptr @spins, align 8
  %self = call i64 @pthread_self()
  %unknown = call i32 @pthread_getaffinity_np(i64 %self, i64 128, ptr @allowed)
  br label %each
each:
  %number = phi i64 [ 0, %begin ], [ %next, %each ]
  %none = getelementptr i32, ptr @barred, i64 %number
  store atomic i32 -1, ptr %none monotonic, align 4
  %range = call ptr @range_of(i64 %number)
  store atomic i64 0, ptr %range seq_cst, align 8
  %next = add i64 %number, 1
  %more = icmp ule i64 %next, %workers
  br i1 %more, label %each, label %leave
leave:
  ret void
}

define internal void @wake_all() {
  %l = call i32 @pthread_mutex_lock(ptr @mutex)
  %b = call i32 @pthread_cond_broadcast(ptr @wake)
  %u = call i32 @pthread_mutex_unlock(ptr @mutex)
  ret void
}

; Starts the workers that are missing, away from `core`. Only who holds `busy` may call it.
define internal void @start(i32 %core) {
begin:
  %wanted = load i64, ptr @wanted, align 8
  br label %each
each:
  %number = load i64, ptr @started, align 8
  %missing = icmp ult i64 %number, %wanted
  br i1 %missing, label %create, label %leave
create:
  %handle = getelementptr i64, ptr @handles, i64 %number
  %more = add i64 %number, 1
  %name = inttoptr i64 %more to ptr  ; the caller is thread 0
  %failed = call i32 @pthread_create(ptr %handle, ptr null, ptr @worker, ptr %name)
  %ok = icmp eq i32 %failed, 0
  br i1 %ok, label %count, label %give_up
count:
  store i64 %more, ptr @started, align 8
  %thread = load i64, ptr %handle, align 8
  call void @keep_off(i64 %number, i64 %thread, i32 %core)
  br label %each
give_up:
  store i64 %number, ptr @wanted, align 8  ; the system has no more threads: what there is must do
  br label %leave
leave:
  ret void
}

; Sends the workers home and waits until they are gone. Jobs that come afterwards are done by their callers.
define void @pool_stop() {
begin:
  store atomic i64 1, ptr @stopping seq_cst, align 8
  call void @wake_all()
  br label %take
take:
  %swap = cmpxchg ptr @busy, i64 0, i64 1 seq_cst seq_cst
  %mine = extractvalue { i64, i1 } %swap, 1
  br i1 %mine, label %close, label %again
again:
  PAUSE
  br label %take
close:
  store i64 0, ptr @wanted, align 8
  br label %each
each:
  %number = load i64, ptr @started, align 8
  %left = icmp ne i64 %number, 0
  br i1 %left, label %join, label %leave
join:
  %last = sub i64 %number, 1
  %place = getelementptr i64, ptr @handles, i64 %last
  %handle = load i64, ptr %place, align 8
  %j = call i32 @pthread_join(i64 %handle, ptr null)
  store i64 %last, ptr @started, align 8
  br label %each
leave:
  store atomic i64 0, ptr @busy seq_cst, align 8
  ret void
}

; Does parts of `job` until none is left to take: of the thread's own range, then of the others'.
define internal void @work(i64 %thread, i64 %job) {
begin:
  %odd = and i64 %job, 1
  %forwards = icmp eq i64 %odd, 0
  %members = load atomic i64, ptr @members monotonic, align 8
  br label %each
each:
  %turn = phi i64 [ 0, %begin ], [ %next_turn, %next ]
  %further = add i64 %thread, %turn
  %whose = urem i64 %further, %members
  %range = call ptr @range_of(i64 %whose)
  %own = icmp eq i64 %turn, 0
  %from_start = icmp eq i1 %own, %forwards
  br label %look
look:
  %word = load atomic i64, ptr %range seq_cst, align 8
  %number = lshr i64 %word, 32
  %ours = icmp eq i64 %number, %job
  %first = and i64 %word, 65535
  %shifted = lshr i64 %word, 16
  %end = and i64 %shifted, 65535
  %some = icmp ult i64 %first, %end
  %open = and i1 %ours, %some
  br i1 %open, label %take, label %next
take:
  %entry = load atomic ptr, ptr @entry monotonic, align 8
  %table = load atomic ptr, ptr @table monotonic, align 8
  %extent = load atomic i64, ptr @extent monotonic, align 8
  %parts = load atomic i64, ptr @parts monotonic, align 8
  %last = sub i64 %end, 1
  %part = select i1 %from_start, i64 %first, i64 %last
  %step = select i1 %from_start, i64 1, i64 -65536
  %taken = add i64 %word, %step
  %swap = cmpxchg ptr %range, i64 %word, i64 %taken seq_cst seq_cst
  %mine = extractvalue { i64, i1 } %swap, 1
  br i1 %mine, label %do, label %look
do:
  %low = mul i64 %extent, %part
  %start = udiv i64 %low, %parts
  %high = add i64 %low, %extent
  %stop = udiv i64 %high, %parts
  call void %entry(ptr %table, i64 %start, i64 %stop)
  %before = atomicrmw add ptr @done, i64 1 seq_cst
  %now = add i64 %before, 1
  %all = icmp eq i64 %now, %parts
  br i1 %all, label %tell, label %look
tell:
  %asleep = load atomic i64, ptr @waiting seq_cst, align 8
  %any = icmp ne i64 %asleep, 0
  br i1 %any, label %wake_caller, label %leave
wake_caller:
  %l = call i32 @pthread_mutex_lock(ptr @mutex)
  %b = call i32 @pthread_cond_broadcast(ptr @finished)
  %u = call i32 @pthread_mutex_unlock(ptr @mutex)
  br label %leave
next:
  %next_turn = add i64 %turn, 1
  %others = icmp ult i64 %next_turn, %members
  br i1 %others, label %each, label %leave
leave:
  ret void
}

define internal i64 @job_of(i64 %thread) alwaysinline {
  %range = call ptr @range_of(i64 %thread)
  %word = load atomic i64, ptr %range seq_cst, align 8
  %number = lshr i64 %word, 32
  ret i64 %number
}

define internal ptr @worker(ptr %name) {
begin:
  %thread = ptrtoint ptr %name to i64
  %most = load i64, ptr @spins, align 8
  br label %look
look:
  %spins = phi i64 [ 0, %begin ], [ 0, %do ], [ %more, %wait ], [ 0, %up ]
  %last = phi i64 [ 0, %begin ], [ %job, %do ], [ %last, %wait ], [ %last, %up ]  ; jobs count from 1
  %job = call i64 @job_of(i64 %thread)
  %another = icmp ne i64 %job, %last
  br i1 %another, label %work, label %idle
work:
  %mine = call i32 @sched_getcpu()
  %callers = load atomic i32, ptr @core monotonic, align 4
  %in_the_way = icmp eq i32 %mine, %callers
  br i1 %in_the_way, label %move, label %do
move:
  %self = call i64 @pthread_self()
  %worker = sub i64 %thread, 1
  call void @keep_off(i64 %worker, i64 %self, i32 %mine)
  br label %do
do:
  call void @work(i64 %thread, i64 %job)
  br label %look
idle:
  %stop = load atomic i64, ptr @stopping seq_cst, align 8
  %ends = icmp ne i64 %stop, 0
  br i1 %ends, label %leave, label %wait_or_sleep
wait_or_sleep:
  %tired = icmp uge i64 %spins, %most
  br i1 %tired, label %sleep, label %wait
wait:
  PAUSE
  %more = add i64 %spins, 1
  br label %look
sleep:
  %l = call i32 @pthread_mutex_lock(ptr @mutex)
  %s = atomicrmw add ptr @sleepers, i64 1 seq_cst
  br label %check
check:
  %job2 = call i64 @job_of(i64 %thread)
  %another2 = icmp ne i64 %job2, %last
  %stop2 = load atomic i64, ptr @stopping seq_cst, align 8
  %ends2 = icmp ne i64 %stop2, 0
  %awake = or i1 %another2, %ends2
  br i1 %awake, label %up, label %doze
doze:
  %w = call i32 @pthread_cond_wait(ptr @wake, ptr @mutex)
  br label %check
up:
  %n = atomicrmw sub ptr @sleepers, i64 1 seq_cst
  %u = call i32 @pthread_mutex_unlock(ptr @mutex)
  br label %look
leave:
  ret ptr null
}

; One call on all workers, or as many as it has parts for.
define internal void @divide(i32 %core, ptr %entry, ptr %table, i64 %extent, i64 %parts) {
begin:
  %workers = load i64, ptr @started, align 8
  %there = add i64 %workers, 1
  %few = icmp ult i64 %parts, %there
  %members = select i1 %few, i64 %parts, i64 %there
  store atomic i32 %core, ptr @core monotonic, align 4
  store atomic ptr %entry, ptr @entry monotonic, align 8
  store atomic ptr %table, ptr @table monotonic, align 8
  store atomic i64 %extent, ptr @extent monotonic, align 8
  store atomic i64 %parts, ptr @parts monotonic, align 8
  store atomic i64 %members, ptr @members monotonic, align 8
  store atomic i64 0, ptr @done monotonic, align 8
  %before = load i64, ptr @job, align 8
  %next = add i64 %before, 1
  %number = and i64 %next, 4294967295
  store i64 %number, ptr @job, align 8
  %job = shl i64 %number, 32
  br label %open
open:
  %behind = phi i64 [ %members, %begin ], [ %thread, %open ]
  %thread = sub i64 %behind, 1
  %low = mul i64 %parts, %thread
  %first = udiv i64 %low, %members
  %high = add i64 %low, %parts
  %end = udiv i64 %high, %members
  %shifted = shl i64 %end, 16
  %both = or i64 %first, %shifted
  %word = or i64 %job, %both
  %range = call ptr @range_of(i64 %thread)
  store atomic i64 %word, ptr %range seq_cst, align 8
  %more_ranges = icmp ne i64 %thread, 0
  br i1 %more_ranges, label %open, label %opened
opened:
  %asleep = load atomic i64, ptr @sleepers seq_cst, align 8
  %any = icmp ne i64 %asleep, 0
  br i1 %any, label %call_them, label %help
call_them:
  call void @keep_all_off(i32 %core)
  call void @wake_all()
  br label %help
help:
  call void @work(i64 0, i64 %number)
  br label %wait
wait:
  %spins = phi i64 [ 0, %help ], [ %more, %spin ]
  %done = load atomic i64, ptr @done seq_cst, align 8
  %all = icmp eq i64 %done, %parts
  br i1 %all, label %leave, label %not_yet
not_yet:
  %most = load i64, ptr @spins, align 8
  %long = icmp uge i64 %spins, %most
  br i1 %long, label %sleep, label %spin
spin:
  PAUSE
  %more = add i64 %spins, 1
  br label %wait
sleep:
  %l = call i32 @pthread_mutex_lock(ptr @mutex)
  store atomic i64 1, ptr @waiting seq_cst, align 8
  br label %check
check:
  %done2 = load atomic i64, ptr @done seq_cst, align 8
  %all2 = icmp eq i64 %done2, %parts
  br i1 %all2, label %up, label %doze
doze:
  %w = call i32 @pthread_cond_wait(ptr @finished, ptr @mutex)
  br label %check
up:
  store atomic i64 0, ptr @waiting seq_cst, align 8
  %u = call i32 @pthread_mutex_unlock(ptr @mutex)
  br label %leave
leave:
  ret void
}

; `record`: how many calls there are, then 4 words for each: entry, table of buffers, extent of the THREAD axis, and the
; parts to divide it into (1: the calling thread does it, and no worker is woken).
define void @pool_run(ptr %record) {
begin:
  %count = load i64, ptr %record, align 8
  %calls = getelementptr i64, ptr %record, i64 1
  br label %each
each:
  %i = phi i64 [ 0, %begin ], [ %after, %next ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %call, label %return
call:
  %at = getelementptr [4 x i64], ptr %calls, i64 %i
  %entry = load ptr, ptr %at, align 8
  %at1 = getelementptr i64, ptr %at, i64 1
  %table = load ptr, ptr %at1, align 8
  %at2 = getelementptr i64, ptr %at, i64 2
  %extent = load i64, ptr %at2, align 8
  %at3 = getelementptr i64, ptr %at, i64 3
  %parts = load i64, ptr %at3, align 8
  %many = icmp ugt i64 %parts, 1
  br i1 %many, label %try, label %alone
try:
  %swap = cmpxchg ptr @busy, i64 0, i64 1 seq_cst seq_cst
  %mine = extractvalue { i64, i1 } %swap, 1
  br i1 %mine, label %together, label %alone
together:
  %core = call i32 @sched_getcpu()
  %started = load i64, ptr @started, align 8
  %wanted = load i64, ptr @wanted, align 8
  %enough = icmp uge i64 %started, %wanted
  br i1 %enough, label %share, label %start
start:
  call void @start(i32 %core)
  br label %share
share:
  call void @divide(i32 %core, ptr %entry, ptr %table, i64 %extent, i64 %parts)
  store atomic i64 0, ptr @busy seq_cst, align 8
  br label %next
alone:
  call void %entry(ptr %table, i64 0, i64 %extent)
  br label %next
next:
  %after = add i64 %i, 1
  br label %each
return:
  ret void
}
