; Worker threads that take parts of a kernel's THREAD axis, and the loop that runs a list of calls.
;
; `state` holds a job's number (high 32 bits) and how many parts were taken: from the back by workers (16 bits), from the
; front by the caller (16 bits; all 32 ones: closed). So whoever walks through the same memory again finds in its caches
; what it left there. A part is taken by a compare-and-swap of the whole word, so a late worker can never take a part of
; another job. The caller
; fills in a job while it is closed, opens it, takes parts itself until none is left, waits until all are done, and
; closes it. Nobody is missed:
;
; - A worker with nothing to do spins a little, then sleeps: it counts itself among `sleepers` and looks at `state` once
;   more, holding the mutex until it waits. The caller opens the job and then looks at `sleepers`. All four are
;   sequentially consistent, so one sees the other; and the caller's broadcast needs the mutex, so it comes after the wait.
; - A caller whose parts others still do spins a little, then sleeps in the same way: it sets `waiting` and looks at
;   `done`; the worker that does the last part counts it in `done` and looks at `waiting`.
;
; Workers start with the first job that has parts for them. After a fork the child has none: `pool_init` there makes
; everything new, and the next job starts them.

@state = internal global i64 4294967295, align 128
@done = internal global i64 0, align 128
@waiting = internal global i64 0
@entry = internal global ptr null, align 128
@table = internal global ptr null
@extent = internal global i64 0
@parts = internal global i64 0
@busy = internal global i64 0, align 128
@sleepers = internal global i64 0, align 128
@stopping = internal global i64 0
@wanted = internal global i64 0
@started = internal global i64 0
@spins = internal global i64 0
@mutex = internal global [128 x i8] zeroinitializer, align 128
@wake = internal global [128 x i8] zeroinitializer, align 128
@finished = internal global [128 x i8] zeroinitializer, align 128
@handles = internal global [MOST_WORKERS x i64] zeroinitializer, align 128

declare i32 @pthread_mutex_init(ptr, ptr)
declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @pthread_cond_init(ptr, ptr)
declare i32 @pthread_cond_wait(ptr, ptr)
declare i32 @pthread_cond_broadcast(ptr)
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_join(i64, ptr)

; A pool of `workers` that spin `spins` times before they sleep; nothing runs yet.
define void @pool_init(i64 %workers, i64 %spins) {
  %m = call i32 @pthread_mutex_init(ptr @mutex, ptr null)
  %w = call i32 @pthread_cond_init(ptr @wake, ptr null)
  %f = call i32 @pthread_cond_init(ptr @finished, ptr null)
  store atomic i64 4294967295, ptr @state seq_cst, align 8
  store atomic i64 0, ptr @done seq_cst, align 8
  store atomic i64 0, ptr @waiting seq_cst, align 8
  store atomic i64 0, ptr @busy seq_cst, align 8
  store atomic i64 0, ptr @sleepers seq_cst, align 8
  store i64 %workers, ptr @wanted, align 8
  store i64 0, ptr @started, align 8
  store i64 %spins, ptr @spins, align 8
  ret void
}

define internal void @wake_all() {
  %l = call i32 @pthread_mutex_lock(ptr @mutex)
  %b = call i32 @pthread_cond_broadcast(ptr @wake)
  %u = call i32 @pthread_mutex_unlock(ptr @mutex)
  ret void
}

; Starts the workers that are missing. Only who holds `busy` may call it.
define internal void @start() {
begin:
  %wanted = load i64, ptr @wanted, align 8
  br label %each
each:
  %number = load i64, ptr @started, align 8
  %missing = icmp ult i64 %number, %wanted
  br i1 %missing, label %create, label %leave
create:
  %handle = getelementptr i64, ptr @handles, i64 %number
  %failed = call i32 @pthread_create(ptr %handle, ptr null, ptr @worker, ptr null)
  %ok = icmp eq i32 %failed, 0
  br i1 %ok, label %count, label %give_up
count:
  %more = add i64 %number, 1
  store i64 %more, ptr @started, align 8
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

; How many parts of the job are taken, from both ends.
define internal i64 @taken(i64 %state) alwaysinline {
  %front = and i64 %state, 65535
  %shifted = lshr i64 %state, 16
  %back = and i64 %shifted, 65535
  %both = add i64 %front, %back
  ret i64 %both
}

; Takes a part of the open job and does it; false where there is none to take.
define internal i1 @work(i1 %is_caller) {
  br label %begin
begin:
  %state = load atomic i64, ptr @state seq_cst, align 8
  %next = call i64 @taken(i64 %state)
  %parts = load atomic i64, ptr @parts monotonic, align 8
  %open = icmp ult i64 %next, %parts
  br i1 %open, label %take, label %nothing
take:
  %entry = load atomic ptr, ptr @entry monotonic, align 8
  %table = load atomic ptr, ptr @table monotonic, align 8
  %extent = load atomic i64, ptr @extent monotonic, align 8
  %one = select i1 %is_caller, i64 1, i64 65536
  %taken = add i64 %state, %one
  %swap = cmpxchg ptr @state, i64 %state, i64 %taken seq_cst seq_cst
  %mine = extractvalue { i64, i1 } %swap, 1
  br i1 %mine, label %do, label %begin
do:
  %front = and i64 %state, 65535
  %back = sub i64 %next, %front
  %behind = sub i64 %parts, %back
  %last_part = sub i64 %behind, 1
  %part = select i1 %is_caller, i64 %front, i64 %last_part
  %low = mul i64 %extent, %part
  %start = udiv i64 %low, %parts
  %high = add i64 %low, %extent
  %stop = udiv i64 %high, %parts
  call void %entry(ptr %table, i64 %start, i64 %stop)
  %before = atomicrmw add ptr @done, i64 1 seq_cst
  %now = add i64 %before, 1
  %last = icmp eq i64 %now, %parts
  br i1 %last, label %tell, label %did
tell:
  %asleep = load atomic i64, ptr @waiting seq_cst, align 8
  %any = icmp ne i64 %asleep, 0
  br i1 %any, label %wake_caller, label %did
wake_caller:
  %l = call i32 @pthread_mutex_lock(ptr @mutex)
  %b = call i32 @pthread_cond_broadcast(ptr @finished)
  %u = call i32 @pthread_mutex_unlock(ptr @mutex)
  br label %did
did:
  ret i1 true
nothing:
  ret i1 false
}

define internal ptr @worker(ptr %unused) {
begin:
  %most = load i64, ptr @spins, align 8
  br label %look
look:
  %spins = phi i64 [ 0, %begin ], [ 0, %worked ], [ %more, %wait ], [ 0, %up ]
  %did = call i1 @work(i1 false)
  br i1 %did, label %worked, label %idle
worked:
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
  %state = load atomic i64, ptr @state seq_cst, align 8
  %next = call i64 @taken(i64 %state)
  %parts = load atomic i64, ptr @parts monotonic, align 8
  %open = icmp ult i64 %next, %parts
  %stop2 = load atomic i64, ptr @stopping seq_cst, align 8
  %ends2 = icmp ne i64 %stop2, 0
  %awake = or i1 %open, %ends2
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

; One call on all workers.
define internal void @divide(ptr %entry, ptr %table, i64 %extent, i64 %parts) {
begin:
  store atomic ptr %entry, ptr @entry monotonic, align 8
  store atomic ptr %table, ptr @table monotonic, align 8
  store atomic i64 %extent, ptr @extent monotonic, align 8
  store atomic i64 %parts, ptr @parts monotonic, align 8
  store atomic i64 0, ptr @done monotonic, align 8
  %closed = load atomic i64, ptr @state monotonic, align 8
  %open = add i64 %closed, 1
  store atomic i64 %open, ptr @state seq_cst, align 8
  %asleep = load atomic i64, ptr @sleepers seq_cst, align 8
  %any = icmp ne i64 %asleep, 0
  br i1 %any, label %call_them, label %help
call_them:
  call void @wake_all()
  br label %help
help:
  %did = call i1 @work(i1 true)
  br i1 %did, label %help, label %wait
wait:
  %spins = phi i64 [ 0, %help ], [ %more, %spin ]
  %done = load atomic i64, ptr @done seq_cst, align 8
  %all = icmp eq i64 %done, %parts
  br i1 %all, label %close, label %not_yet
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
  br label %close
close:
  %job = or i64 %open, 4294967295
  store atomic i64 %job, ptr @state seq_cst, align 8
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
  %started = load i64, ptr @started, align 8
  %wanted = load i64, ptr @wanted, align 8
  %enough = icmp uge i64 %started, %wanted
  br i1 %enough, label %share, label %start
start:
  call void @start()
  br label %share
share:
  call void @divide(ptr %entry, ptr %table, i64 %extent, i64 %parts)
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
