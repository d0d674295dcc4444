; Worker threads that take parts of a kernel's THREAD axis, and the loop that runs a list of calls.
;
; `state` holds a job's number (high 32 bits) and the next part to be taken (low 32 bits, all ones: closed). A part is
; taken by a compare-and-swap of the whole word, so a late worker can never take a part of another job. The caller
; fills in a job while it is closed, opens it, takes parts itself until none is left, waits until all are done, and
; closes it. Workers that find nothing to do spin a little and then sleep.

@state = internal global i64 4294967295, align 128
@done = internal global i64 0, align 128
@entry = internal global ptr null, align 128
@table = internal global ptr null
@extent = internal global i64 0
@parts = internal global i64 0
@busy = internal global i64 0, align 128
@sleepers = internal global i64 0, align 128
@stopping = internal global i64 0
@mutex = internal global [128 x i8] zeroinitializer, align 128
@wake = internal global [128 x i8] zeroinitializer, align 128

declare i32 @pthread_mutex_init(ptr, ptr)
declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @pthread_cond_init(ptr, ptr)
declare i32 @pthread_cond_wait(ptr, ptr)
declare i32 @pthread_cond_broadcast(ptr)
declare i32 @sched_yield()

define void @pool_init() {
  %m = call i32 @pthread_mutex_init(ptr @mutex, ptr null)
  %c = call i32 @pthread_cond_init(ptr @wake, ptr null)
  ret void
}

define internal void @wake_all() {
  %l = call i32 @pthread_mutex_lock(ptr @mutex)
  %b = call i32 @pthread_cond_broadcast(ptr @wake)
  %u = call i32 @pthread_mutex_unlock(ptr @mutex)
  ret void
}

define void @pool_stop() {
  store atomic i64 1, ptr @stopping seq_cst, align 8
  call void @wake_all()
  ret void
}

; Takes a part of the open job and does it; false where there is none to take.
define internal i1 @work() {
  br label %begin
begin:
  %state = load atomic i64, ptr @state seq_cst, align 8
  %next = and i64 %state, 4294967295
  %parts = load atomic i64, ptr @parts monotonic, align 8
  %open = icmp ult i64 %next, %parts
  br i1 %open, label %take, label %nothing
take:
  %entry = load atomic ptr, ptr @entry monotonic, align 8
  %table = load atomic ptr, ptr @table monotonic, align 8
  %extent = load atomic i64, ptr @extent monotonic, align 8
  %taken = add i64 %state, 1
  %swap = cmpxchg ptr @state, i64 %state, i64 %taken seq_cst seq_cst
  %mine = extractvalue { i64, i1 } %swap, 1
  br i1 %mine, label %do, label %begin
do:
  %low = mul i64 %extent, %next
  %start = udiv i64 %low, %parts
  %high = add i64 %low, %extent
  %stop = udiv i64 %high, %parts
  call void %entry(ptr %table, i64 %start, i64 %stop)
  %before = atomicrmw add ptr @done, i64 1 seq_cst
  ret i1 true
nothing:
  ret i1 false
}

define void @pool_worker() {
begin:
  br label %look
look:
  %spins = phi i64 [ 0, %begin ], [ 0, %worked ], [ %more, %wait ], [ 0, %up ]
  %did = call i1 @work()
  br i1 %did, label %worked, label %idle
worked:
  br label %look
idle:
  %stop = load atomic i64, ptr @stopping seq_cst, align 8
  %ends = icmp ne i64 %stop, 0
  br i1 %ends, label %leave, label %wait_or_sleep
wait_or_sleep:
  %tired = icmp ugt i64 %spins, SPINS
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
  %next = and i64 %state, 4294967295
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
  ret void
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
  %did = call i1 @work()
  br i1 %did, label %help, label %wait
wait:
  %spins = phi i64 [ 0, %help ], [ %more, %spin ], [ 0, %yield ]
  %done = load atomic i64, ptr @done seq_cst, align 8
  %all = icmp eq i64 %done, %parts
  br i1 %all, label %close, label %not_yet
not_yet:
  %long = icmp ugt i64 %spins, SPINS
  br i1 %long, label %yield, label %spin
spin:
  PAUSE
  %more = add i64 %spins, 1
  br label %wait
yield:
  %y = call i32 @sched_yield()
  br label %wait
close:
  %job = or i64 %open, 4294967295
  store atomic i64 %job, ptr @state seq_cst, align 8
  ret void
}

; `count` calls of 4 words each: entry, table of buffers, extent of the THREAD axis, parts to divide it into.
define void @pool_run(ptr %calls, i64 %count) {
begin:
  %swap = cmpxchg ptr @busy, i64 0, i64 1 seq_cst seq_cst
  %mine = extractvalue { i64, i1 } %swap, 1
  br label %each
each:
  %i = phi i64 [ 0, %begin ], [ %after, %next ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %call, label %finish
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
  %shared = and i1 %many, %mine
  br i1 %shared, label %together, label %alone
together:
  call void @divide(ptr %entry, ptr %table, i64 %extent, i64 %parts)
  br label %next
alone:
  call void %entry(ptr %table, i64 0, i64 %extent)
  br label %next
next:
  %after = add i64 %i, 1
  br label %each
finish:
  br i1 %mine, label %release, label %return
release:
  store atomic i64 0, ptr @busy seq_cst, align 8
  br label %return
return:
  ret void
}
