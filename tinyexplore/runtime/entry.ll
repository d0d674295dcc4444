; A call of a captured function as a builtin of Python's: it looks whether all is as it was, puts the addresses of other
; arguments where the kernels find them, runs the batch, and makes the result. Whatever is not as it should be goes to
; `fallback`, which is Python. The GIL is held throughout.
;
; Of Python's objects it knows what its functions tell (`PyTuple_GetItem`, ...), and where the fields of some classes with
; __slots__ lie, which `entry.py` has measured. `%Entry` is `entry.py`'s `_Record`; pointers to objects in it are borrowed.
; Letting go what was held before may run any code, calls of this very function too: `moves` then says whether that changed
; anything. No other code of Python's runs between looking and the end of the batch.

%Entry = type {
  i64, ; 0  ready: 0 leaves every call to the fallback
  ptr, ; 1  fallback
  i64, ; 2  arguments: how many
  ptr, ; 3  kind: the class of arguments and results
  i64, ; 4  field: where in an argument that lies which must be as it was
  ptr, ; 5  expected: that, for each argument
  ptr, ; 6  changes: a number that must be as it was
  i64, ; 7  seen: that number
  ptr, ; 8  attribute: a name in `kind`
  ptr, ; 9  value: what that must be
  i64, ; 10 variables: how many context variables must have certain values
  ptr, ; 11 these
  ptr, ; 12 their values
  ptr, ; 13 run: the function that runs a batch
  ptr, ; 14 batch
  ptr, ; 15 counters: kernels, operations, bytes and nanoseconds are added up there
  i64, ; 16 kernels of the batch
  i64, ; 17 operations
  i64, ; 18 bytes
  i64, ; 19 clock: which of the system's
  i64, ; 20 results: how many
  i64, ; 21 form: 0 the one result, 1 a tuple of results, 2 a list of them
  i64, ; 22 fields of `kind`: how many
  ptr, ; 23 where they lie
  ptr, ; 24 what lies there, for each result
  ptr, ; 25 held: a list of what `expected` points to, which keeps it there
  i64, ; 26 moves: counts arguments exchanged here, and whenever it is made unready
  ptr, ; 27 slots: a %Slot for each argument
  [3 x ptr], ; 28 the classes of a value, its buffer and its memory
  [6 x i64], ; 29 where shape, dtype, device and buffer of a value lie, the memory of a buffer, the address of a memory
  i64, ; 30 written: how many addresses the batch writes to
  ptr  ; 31 these
}

; What a value must have to stand for an argument, and the places that get its address.
%Slot = type {
  ptr, ; 0 shape
  ptr, ; 1 dtype
  ptr, ; 2 device
  i64, ; 3 mask: bits that must be 0 in its address
  i64, ; 4 places: how many
  ptr  ; 5 these
}

declare ptr @PyTuple_GetItem(ptr, i64)
declare i64 @PyTuple_Size(ptr)
declare ptr @PyTuple_New(i64)
declare i32 @PyTuple_SetItem(ptr, i64, ptr)
declare ptr @PyList_New(i64)
declare i32 @PyList_SetItem(ptr, i64, ptr)
declare i64 @PyDict_Size(ptr)
declare ptr @PyBytes_AsString(ptr)
declare i32 @PyContextVar_Get(ptr, ptr, ptr)
declare ptr @PyObject_GetAttr(ptr, ptr)
declare ptr @PyObject_Type(ptr)
declare ptr @PyObject_Call(ptr, ptr, ptr)
declare ptr @PyType_GenericAlloc(ptr, i64)
declare ptr @PyList_GetItem(ptr, i64)
declare i32 @PyObject_RichCompareBool(ptr, ptr, i32)
declare i64 @PyLong_AsUnsignedLongLong(ptr)
declare void @PyErr_Clear()
declare void @Py_IncRef(ptr)
declare void @Py_DecRef(ptr)
declare i32 @clock_gettime(i32, ptr)

define internal i64 @now(i32 %clock) {
  %time = alloca [2 x i64], align 8
  %failed = call i32 @clock_gettime(i32 %clock, ptr %time)
  %seconds = load i64, ptr %time, align 8
  %rest_at = getelementptr i64, ptr %time, i64 1
  %rest = load i64, ptr %rest_at, align 8
  %whole = mul i64 %seconds, 1000000000
  %all = add i64 %whole, %rest
  ret i64 %all
}

define internal void @count(ptr %counters, i64 %place, i64 %more) {
  %at = getelementptr i64, ptr %counters, i64 %place
  %before = load i64, ptr %at, align 8
  %after = add i64 %before, %more
  store i64 %after, ptr %at, align 8
  ret void
}

define internal i1 @is_a(ptr %object, ptr %entry, i64 %which) {
  %class_at = getelementptr %Entry, ptr %entry, i64 0, i32 28, i64 %which
  %class = load ptr, ptr %class_at, align 8
  %its = call ptr @PyObject_Type(ptr %object)
  call void @Py_DecRef(ptr %its)
  %same = icmp eq ptr %its, %class
  ret i1 %same
}

define internal ptr @field(ptr %object, ptr %entry, i64 %which) {
  %offset_at = getelementptr %Entry, ptr %entry, i64 0, i32 29, i64 %which
  %offset = load i64, ptr %offset_at, align 8
  %at = getelementptr i8, ptr %object, i64 %offset
  %found = load ptr, ptr %at, align 8
  ret ptr %found
}

; Where the elements of %value lie, if it may stand for argument %i; else 0.
define internal i64 @address_of(ptr %entry, i64 %i, ptr %value) {
begin:
  %slots_at = getelementptr %Entry, ptr %entry, i64 0, i32 27
  %slots = load ptr, ptr %slots_at, align 8
  %slot = getelementptr %Slot, ptr %slots, i64 %i
  %no_value = icmp eq ptr %value, null
  br i1 %no_value, label %no, label %kind
kind:
  %is_value = call i1 @is_a(ptr %value, ptr %entry, i64 0)
  br i1 %is_value, label %dtype, label %no
dtype:
  %dtype_at = getelementptr %Slot, ptr %slot, i64 0, i32 1
  %wanted_dtype = load ptr, ptr %dtype_at, align 8
  %its_dtype = call ptr @field(ptr %value, ptr %entry, i64 1)
  %same_dtype = icmp eq ptr %its_dtype, %wanted_dtype
  br i1 %same_dtype, label %device, label %no
device:
  %device_at = getelementptr %Slot, ptr %slot, i64 0, i32 2
  %wanted_device = load ptr, ptr %device_at, align 8
  %its_device = call ptr @field(ptr %value, ptr %entry, i64 2)
  %same_device = icmp eq ptr %its_device, %wanted_device
  br i1 %same_device, label %shape, label %no
shape:
  %wanted_shape = load ptr, ptr %slot, align 8
  %its_shape = call ptr @field(ptr %value, ptr %entry, i64 0)
  %no_shape = icmp eq ptr %its_shape, null
  br i1 %no_shape, label %no, label %compare
compare:
  %equal = call i32 @PyObject_RichCompareBool(ptr %its_shape, ptr %wanted_shape, i32 2)
  switch i32 %equal, label %no [
    i32 1, label %buffer
    i32 -1, label %error
  ]
buffer:
  %buffer_found = call ptr @field(ptr %value, ptr %entry, i64 3)
  %no_buffer = icmp eq ptr %buffer_found, null
  br i1 %no_buffer, label %no, label %buffer_kind
buffer_kind:
  %is_buffer = call i1 @is_a(ptr %buffer_found, ptr %entry, i64 1)
  br i1 %is_buffer, label %memory, label %no
memory:
  %memory_found = call ptr @field(ptr %buffer_found, ptr %entry, i64 4)
  %no_memory = icmp eq ptr %memory_found, null
  br i1 %no_memory, label %no, label %memory_kind
memory_kind:
  %is_memory = call i1 @is_a(ptr %memory_found, ptr %entry, i64 2)
  br i1 %is_memory, label %address, label %no
address:
  %number = call ptr @field(ptr %memory_found, ptr %entry, i64 5)
  %found = call i64 @PyLong_AsUnsignedLongLong(ptr %number)
  %is_error = icmp eq i64 %found, -1
  br i1 %is_error, label %error, label %aligned
aligned:
  %mask_at = getelementptr %Slot, ptr %slot, i64 0, i32 3
  %mask = load i64, ptr %mask_at, align 8
  %rest = and i64 %found, %mask
  %is_aligned = icmp eq i64 %rest, 0
  br i1 %is_aligned, label %overwritten, label %no
overwritten:
  %count_at = getelementptr %Entry, ptr %entry, i64 0, i32 30
  %count = load i64, ptr %count_at, align 8
  %written_at = getelementptr %Entry, ptr %entry, i64 0, i32 31
  %written = load ptr, ptr %written_at, align 8
  br label %each
each:
  %j = phi i64 [ 0, %overwritten ], [ %j_next, %next ]
  %more = icmp ult i64 %j, %count
  br i1 %more, label %look, label %yes
look:
  %one_at = getelementptr i64, ptr %written, i64 %j
  %one = load i64, ptr %one_at, align 8
  %is_written = icmp eq i64 %one, %found
  br i1 %is_written, label %no, label %next
next:
  %j_next = add i64 %j, 1
  br label %each
yes:
  ret i64 %found
error:
  call void @PyErr_Clear()
  br label %no
no:
  ret i64 0
}

; Argument %i is %value, at %address, from now on. What it was before is in %held, with a reference of ours, and stays in
; %before until `let_go`.
define internal void @exchange(ptr %entry, i64 %i, ptr %value, i64 %address, ptr %before) {
begin:
  %held_at = getelementptr %Entry, ptr %entry, i64 0, i32 25
  %held = load ptr, ptr %held_at, align 8
  %old = call ptr @PyList_GetItem(ptr %held, i64 %i)
  call void @Py_IncRef(ptr %old)
  %before_at = getelementptr ptr, ptr %before, i64 %i
  store ptr %old, ptr %before_at, align 8
  call void @Py_IncRef(ptr %value)
  %stored = call i32 @PyList_SetItem(ptr %held, i64 %i, ptr %value)
  %expected_at = getelementptr %Entry, ptr %entry, i64 0, i32 5
  %expected = load ptr, ptr %expected_at, align 8
  %expected_here = getelementptr ptr, ptr %expected, i64 %i
  store ptr %value, ptr %expected_here, align 8
  %moved_at = getelementptr %Entry, ptr %entry, i64 0, i32 26
  %moves = load i64, ptr %moved_at, align 8
  %one_more = add i64 %moves, 1
  store i64 %one_more, ptr %moved_at, align 8
  %slots_at = getelementptr %Entry, ptr %entry, i64 0, i32 27
  %slots = load ptr, ptr %slots_at, align 8
  %count_at = getelementptr %Slot, ptr %slots, i64 %i, i32 4
  %count = load i64, ptr %count_at, align 8
  %places_at = getelementptr %Slot, ptr %slots, i64 %i, i32 5
  %places = load ptr, ptr %places_at, align 8
  br label %each
each:
  %j = phi i64 [ 0, %begin ], [ %j_next, %put ]
  %more = icmp ult i64 %j, %count
  br i1 %more, label %put, label %leave
put:
  %place_at = getelementptr ptr, ptr %places, i64 %j
  %place = load ptr, ptr %place_at, align 8
  store i64 %address, ptr %place, align 8
  %j_next = add i64 %j, 1
  br label %each
leave:
  ret void
}

; For each argument that is another: its value in %values, its address in %addresses (0: as it was).
define internal void @exchange_all(ptr %entry, i64 %count, ptr %values, ptr %addresses, ptr %before) {
begin:
  br label %each
each:
  %i = phi i64 [ 0, %begin ], [ %i_next, %next ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %look, label %leave
look:
  %address_at = getelementptr i64, ptr %addresses, i64 %i
  %address = load i64, ptr %address_at, align 8
  %same = icmp eq i64 %address, 0
  br i1 %same, label %next, label %other
other:
  %value_at = getelementptr ptr, ptr %values, i64 %i
  %value = load ptr, ptr %value_at, align 8
  call void @exchange(ptr %entry, i64 %i, ptr %value, i64 %address, ptr %before)
  br label %next
next:
  %i_next = add i64 %i, 1
  br label %each
leave:
  ret void
}

define internal void @let_go(i64 %count, ptr %addresses, ptr %before) {
begin:
  br label %each
each:
  %i = phi i64 [ 0, %begin ], [ %i_next, %next ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %look, label %leave
look:
  %address_at = getelementptr i64, ptr %addresses, i64 %i
  %address = load i64, ptr %address_at, align 8
  %same = icmp eq i64 %address, 0
  br i1 %same, label %next, label %other
other:
  %before_at = getelementptr ptr, ptr %before, i64 %i
  %old = load ptr, ptr %before_at, align 8
  call void @Py_DecRef(ptr %old)
  br label %next
next:
  %i_next = add i64 %i, 1
  br label %each
leave:
  ret void
}

; 1 where the program is as it was and the arguments may be taken, 0 where not, -1 where Python has an error set. Values
; and addresses of arguments that are others are put into %values and %addresses, 0 for those that are as they were.
define internal i32 @is_as_captured(ptr %entry, ptr %args, ptr %kwargs, ptr %values, ptr %addresses) {
begin:
  %found = alloca ptr, align 8
  %ready = load i64, ptr %entry, align 8
  %is_ready = icmp ne i64 %ready, 0
  br i1 %is_ready, label %unchanged, label %no
unchanged:
  %changes_at = getelementptr %Entry, ptr %entry, i64 0, i32 6
  %changes = load ptr, ptr %changes_at, align 8
  %now = load i64, ptr %changes, align 8
  %seen_at = getelementptr %Entry, ptr %entry, i64 0, i32 7
  %seen = load i64, ptr %seen_at, align 8
  %same_epoch = icmp eq i64 %now, %seen
  br i1 %same_epoch, label %keywords, label %no
keywords:
  %no_keywords = icmp eq ptr %kwargs, null
  br i1 %no_keywords, label %count, label %how_many
how_many:
  %keyword_count = call i64 @PyDict_Size(ptr %kwargs)
  %none_given = icmp eq i64 %keyword_count, 0
  br i1 %none_given, label %count, label %no
count:
  %given = call i64 @PyTuple_Size(ptr %args)
  %wanted_at = getelementptr %Entry, ptr %entry, i64 0, i32 2
  %wanted = load i64, ptr %wanted_at, align 8
  %as_many = icmp eq i64 %given, %wanted
  br i1 %as_many, label %arguments, label %no
arguments:
  %kind_at = getelementptr %Entry, ptr %entry, i64 0, i32 3
  %kind = load ptr, ptr %kind_at, align 8
  %field_at = getelementptr %Entry, ptr %entry, i64 0, i32 4
  %field = load i64, ptr %field_at, align 8
  %expected_at = getelementptr %Entry, ptr %entry, i64 0, i32 5
  %expected = load ptr, ptr %expected_at, align 8
  br label %argument
argument:
  %i = phi i64 [ 0, %arguments ], [ %i_next, %argument_next ]
  %more = icmp ult i64 %i, %wanted
  br i1 %more, label %look, label %attribute
look:
  %one = call ptr @PyTuple_GetItem(ptr %args, i64 %i)
  %its_kind = call ptr @PyObject_Type(ptr %one)
  call void @Py_DecRef(ptr %its_kind)
  %same_kind = icmp eq ptr %its_kind, %kind
  br i1 %same_kind, label %look_inside, label %no
look_inside:
  %inside_at = getelementptr i8, ptr %one, i64 %field
  %inside = load ptr, ptr %inside_at, align 8
  %before_at = getelementptr ptr, ptr %expected, i64 %i
  %before = load ptr, ptr %before_at, align 8
  %same = icmp eq ptr %inside, %before
  %address_at = getelementptr i64, ptr %addresses, i64 %i
  store i64 0, ptr %address_at, align 8
  br i1 %same, label %argument_next, label %another_value
another_value:
  %address = call i64 @address_of(ptr %entry, i64 %i, ptr %inside)
  store i64 %address, ptr %address_at, align 8
  %value_kept_at = getelementptr ptr, ptr %values, i64 %i
  store ptr %inside, ptr %value_kept_at, align 8
  %fits = icmp ne i64 %address, 0
  br i1 %fits, label %argument_next, label %no
argument_next:
  %i_next = add i64 %i, 1
  br label %argument
attribute:
  %name_at = getelementptr %Entry, ptr %entry, i64 0, i32 8
  %name = load ptr, ptr %name_at, align 8
  %value = call ptr @PyObject_GetAttr(ptr %kind, ptr %name)
  %missing = icmp eq ptr %value, null
  br i1 %missing, label %error, label %attribute_value
attribute_value:
  call void @Py_DecRef(ptr %value)
  %wanted_value_at = getelementptr %Entry, ptr %entry, i64 0, i32 9
  %wanted_value = load ptr, ptr %wanted_value_at, align 8
  %same_value = icmp eq ptr %value, %wanted_value
  br i1 %same_value, label %context, label %no
context:
  %variable_count_at = getelementptr %Entry, ptr %entry, i64 0, i32 10
  %variable_count = load i64, ptr %variable_count_at, align 8
  %variables_at = getelementptr %Entry, ptr %entry, i64 0, i32 11
  %variables = load ptr, ptr %variables_at, align 8
  %contents_at = getelementptr %Entry, ptr %entry, i64 0, i32 12
  %contents = load ptr, ptr %contents_at, align 8
  br label %listener
listener:
  %j = phi i64 [ 0, %context ], [ %j_next, %variable_value ]
  %another = icmp ult i64 %j, %variable_count
  br i1 %another, label %ask, label %yes
ask:
  %variable_at = getelementptr ptr, ptr %variables, i64 %j
  %variable = load ptr, ptr %variable_at, align 8
  %failed = call i32 @PyContextVar_Get(ptr %variable, ptr null, ptr %found)
  %is_error = icmp slt i32 %failed, 0
  br i1 %is_error, label %error, label %asked
asked:
  %content = load ptr, ptr %found, align 8
  call void @Py_DecRef(ptr %content)
  %wanted_content_at = getelementptr ptr, ptr %contents, i64 %j
  %wanted_content = load ptr, ptr %wanted_content_at, align 8
  %same_content = icmp eq ptr %content, %wanted_content
  br i1 %same_content, label %variable_value, label %no
variable_value:
  %j_next = add i64 %j, 1
  br label %listener
yes:
  ret i32 1
no:
  ret i32 0
error:
  ret i32 -1
}

; A new object of `kind` with `values` in its fields; null where Python has an error set.
define internal ptr @make(ptr %entry, ptr %values) {
begin:
  %kind_at = getelementptr %Entry, ptr %entry, i64 0, i32 3
  %kind = load ptr, ptr %kind_at, align 8
  %new = call ptr @PyType_GenericAlloc(ptr %kind, i64 0)
  %failed = icmp eq ptr %new, null
  br i1 %failed, label %leave, label %fill
fill:
  %count_at = getelementptr %Entry, ptr %entry, i64 0, i32 22
  %count = load i64, ptr %count_at, align 8
  %offsets_at = getelementptr %Entry, ptr %entry, i64 0, i32 23
  %offsets = load ptr, ptr %offsets_at, align 8
  br label %field
field:
  %i = phi i64 [ 0, %fill ], [ %i_next, %next ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %next, label %leave
next:
  %offset_at = getelementptr i64, ptr %offsets, i64 %i
  %offset = load i64, ptr %offset_at, align 8
  %value_at = getelementptr ptr, ptr %values, i64 %i
  %value = load ptr, ptr %value_at, align 8
  call void @Py_IncRef(ptr %value)
  %place = getelementptr i8, ptr %new, i64 %offset
  store ptr %value, ptr %place, align 8
  %i_next = add i64 %i, 1
  br label %field
leave:
  ret ptr %new
}

define internal ptr @result(ptr %entry) {
begin:
  %values_at = getelementptr %Entry, ptr %entry, i64 0, i32 24
  %values = load ptr, ptr %values_at, align 8
  %form_at = getelementptr %Entry, ptr %entry, i64 0, i32 21
  %form = load i64, ptr %form_at, align 8
  %count_at = getelementptr %Entry, ptr %entry, i64 0, i32 20
  %count = load i64, ptr %count_at, align 8
  %fields_at = getelementptr %Entry, ptr %entry, i64 0, i32 22
  %fields = load i64, ptr %fields_at, align 8
  %is_list = icmp eq i64 %form, 2
  switch i64 %form, label %single [
    i64 1, label %tuple
    i64 2, label %list
  ]
single:
  %one = call ptr @make(ptr %entry, ptr %values)
  ret ptr %one
tuple:
  %new_tuple = call ptr @PyTuple_New(i64 %count)
  br label %made
list:
  %new_list = call ptr @PyList_New(i64 %count)
  br label %made
made:
  %whole = phi ptr [ %new_tuple, %tuple ], [ %new_list, %list ]
  %failed = icmp eq ptr %whole, null
  br i1 %failed, label %leave, label %each
each:
  %i = phi i64 [ 0, %made ], [ %i_next, %next ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %part, label %leave
part:
  %first = mul i64 %i, %fields
  %its_values = getelementptr ptr, ptr %values, i64 %first
  %new = call ptr @make(ptr %entry, ptr %its_values)
  %is_null = icmp eq ptr %new, null
  br i1 %is_null, label %give_up, label %put
put:
  br i1 %is_list, label %put_list, label %put_tuple
put_list:
  %l = call i32 @PyList_SetItem(ptr %whole, i64 %i, ptr %new)
  br label %next
put_tuple:
  %t = call i32 @PyTuple_SetItem(ptr %whole, i64 %i, ptr %new)
  br label %next
next:
  %i_next = add i64 %i, 1
  br label %each
give_up:
  call void @Py_DecRef(ptr %whole)
  ret ptr null
leave:
  ret ptr %whole
}

; A PyCFunctionWithKeywords. `self` is a tuple that begins with bytes, in which the address of an %Entry lies.
define ptr @entry_call(ptr %self, ptr %args, ptr %kwargs) {
begin:
  %holder = call ptr @PyTuple_GetItem(ptr %self, i64 0)
  %bytes = call ptr @PyBytes_AsString(ptr %holder)
  %entry = load ptr, ptr %bytes, align 1
  %values = alloca [MAX_ARGUMENTS x ptr], align 8
  %addresses = alloca [MAX_ARGUMENTS x i64], align 8
  %before = alloca [MAX_ARGUMENTS x ptr], align 8
  %answer = call i32 @is_as_captured(ptr %entry, ptr %args, ptr %kwargs, ptr %values, ptr %addresses)
  switch i32 %answer, label %replay [
    i32 0, label %python
    i32 -1, label %error
  ]
python:
  %fallback_at = getelementptr %Entry, ptr %entry, i64 0, i32 1
  %fallback = load ptr, ptr %fallback_at, align 8
  %other = call ptr @PyObject_Call(ptr %fallback, ptr %args, ptr %kwargs)
  ret ptr %other
replay:
  %given_at = getelementptr %Entry, ptr %entry, i64 0, i32 2
  %given = load i64, ptr %given_at, align 8
  call void @exchange_all(ptr %entry, i64 %given, ptr %values, ptr %addresses, ptr %before)
  %moves_at = getelementptr %Entry, ptr %entry, i64 0, i32 26
  %moves = load i64, ptr %moves_at, align 8
  call void @let_go(i64 %given, ptr %addresses, ptr %before)
  %moves_now = load i64, ptr %moves_at, align 8
  %undisturbed = icmp eq i64 %moves_now, %moves
  br i1 %undisturbed, label %run_it, label %python
run_it:
  %clock_at = getelementptr %Entry, ptr %entry, i64 0, i32 19
  %clock = load i64, ptr %clock_at, align 8
  %clock_id = trunc i64 %clock to i32
  %began = call i64 @now(i32 %clock_id)
  %run_at = getelementptr %Entry, ptr %entry, i64 0, i32 13
  %run = load ptr, ptr %run_at, align 8
  %batch_at = getelementptr %Entry, ptr %entry, i64 0, i32 14
  %batch = load ptr, ptr %batch_at, align 8
  call void %run(ptr %batch)
  %ended = call i64 @now(i32 %clock_id)
  %took = sub i64 %ended, %began
  %counters_at = getelementptr %Entry, ptr %entry, i64 0, i32 15
  %counters = load ptr, ptr %counters_at, align 8
  %kernels_at = getelementptr %Entry, ptr %entry, i64 0, i32 16
  %kernels = load i64, ptr %kernels_at, align 8
  %operations_at = getelementptr %Entry, ptr %entry, i64 0, i32 17
  %operations = load i64, ptr %operations_at, align 8
  %moved_at = getelementptr %Entry, ptr %entry, i64 0, i32 18
  %moved = load i64, ptr %moved_at, align 8
  call void @count(ptr %counters, i64 0, i64 %kernels)
  call void @count(ptr %counters, i64 1, i64 %operations)
  call void @count(ptr %counters, i64 2, i64 %moved)
  call void @count(ptr %counters, i64 3, i64 %took)
  %result = call ptr @result(ptr %entry)
  ret ptr %result
error:
  ret ptr null
}
