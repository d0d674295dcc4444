; A call of a captured function as a builtin of Python's: it looks whether all is as it was, runs the batch, and makes the
; result. Whatever is not as it was goes to `fallback`, which is Python. The GIL is held throughout.
;
; Of Python's objects it knows what its functions tell (`PyTuple_GetItem`, ...), and where the fields of one class with
; __slots__ lie, which `entry.py` has measured. `%Entry` is `entry.py`'s `Entry`; pointers to objects in it are borrowed.

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
  ptr  ; 24 what lies there, for each result
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

; 1 where the program and the arguments are as they were, 0 where not, -1 where Python has an error set.
define internal i32 @is_as_captured(ptr %entry, ptr %args, ptr %kwargs) {
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
  br i1 %same, label %argument_next, label %no
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
  %answer = call i32 @is_as_captured(ptr %entry, ptr %args, ptr %kwargs)
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
