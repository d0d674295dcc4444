; Caches that replace what was used least recently, and how far apart uses of a line are (lru.py says what both
; mean, and does the same in Python). A line is a number from 0 on; -1 stands for no access. Access %columns[c % width]
; touches line c of a stream.

; Each set of a level is a row of lines, the one used last first. A line is looked for from the front, and what stood
; before it moves back by one on the way: it ends where the line was, or the last one falls out.
define void @lru_levels(ptr noalias %lines, i64 %count, ptr noalias %columns, i64 %width, i64 %levels,
                        ptr noalias %sets, ptr noalias %ways, ptr noalias %tags, ptr noalias %found) {
entry:
  %kinds = add i64 %levels, 1
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %i.next, %done ]
  %c = phi i64 [ 0, %entry ], [ %c.next, %done ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %touch, label %exit
touch:
  %line.at = getelementptr i32, ptr %lines, i64 %i
  %line = load i32, ptr %line.at
  %is.none = icmp slt i32 %line, 0
  br i1 %is.none, label %done, label %level
level:
  %l = phi i64 [ 0, %touch ], [ %l.next, %miss ]
  %is.memory = icmp eq i64 %l, %levels
  br i1 %is.memory, label %tell, label %look
look:
  %sets.at = getelementptr i32, ptr %sets, i64 %l
  %sets.l = load i32, ptr %sets.at
  %set = urem i32 %line, %sets.l
  %set.wide = zext i32 %set to i64
  %ways.at = getelementptr i64, ptr %ways, i64 %l
  %ways.l = load i64, ptr %ways.at
  %tags.at = getelementptr ptr, ptr %tags, i64 %l
  %tags.l = load ptr, ptr %tags.at
  %row.start = mul i64 %set.wide, %ways.l
  %row = getelementptr i32, ptr %tags.l, i64 %row.start
  br label %way
way:
  %j = phi i64 [ 0, %look ], [ %j.next, %other ]
  %moved = phi i32 [ %line, %look ], [ %here, %other ]
  %way.at = getelementptr i32, ptr %row, i64 %j
  %here = load i32, ptr %way.at
  store i32 %moved, ptr %way.at
  %is.hit = icmp eq i32 %here, %line
  br i1 %is.hit, label %tell, label %other
other:
  %j.next = add i64 %j, 1
  %is.past = icmp eq i64 %j.next, %ways.l
  br i1 %is.past, label %miss, label %way
miss:
  %l.next = add i64 %l, 1
  br label %level
tell:
  %column.at = getelementptr i32, ptr %columns, i64 %c
  %column = load i32, ptr %column.at
  %column.wide = zext i32 %column to i64
  %found.row = mul i64 %column.wide, %kinds
  %found.place = add i64 %found.row, %l
  %found.at = getelementptr i64, ptr %found, i64 %found.place
  %so.far = load i64, ptr %found.at
  %now = add i64 %so.far, 1
  store i64 %now, ptr %found.at
  br label %done
done:
  %i.next = add i64 %i, 1
  %c.up = add i64 %c, 1
  %is.end = icmp eq i64 %c.up, %width
  %c.next = select i1 %is.end, i64 0, i64 %c.up
  br label %next
exit:
  ret void
}

; All lines in one list, the one used last first, cut into groups 0, 1, 2-3, 4-7 ...: %group has the group
; of a line (-1: never used), %tails the last line of each group (-1: the group is not full), %sizes how many it has. A line that is
; used comes from its group to the front; of each group before that, the last one moves to the next group. %state holds
; the first and the last line of the list.
define void @lru_reuse(ptr noalias %lines, i64 %count, ptr noalias %columns, i64 %width, i64 %groups,
                       ptr noalias %after, ptr noalias %before, ptr noalias %group, ptr noalias %tails,
                       ptr noalias %sizes, ptr noalias %state, ptr noalias %found) {
entry:
  %kinds = add i64 %groups, 1
  %end.at = getelementptr i32, ptr %state, i64 1
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %i.next, %done ]
  %c = phi i64 [ 0, %entry ], [ %c.next, %done ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %touch, label %exit
touch:
  %line.at = getelementptr i32, ptr %lines, i64 %i
  %line = load i32, ptr %line.at
  %is.none = icmp slt i32 %line, 0
  br i1 %is.none, label %done, label %look
look:
  %line.wide = zext i32 %line to i64
  %group.at = getelementptr i32, ptr %group, i64 %line.wide
  %g = load i32, ptr %group.at
  %is.new = icmp slt i32 %g, 0
  %g.wide = sext i32 %g to i64
  %bin = select i1 %is.new, i64 %groups, i64 %g.wide
  %column.at = getelementptr i32, ptr %columns, i64 %c
  %column = load i32, ptr %column.at
  %column.wide = zext i32 %column to i64
  %found.row = mul i64 %column.wide, %kinds
  %found.place = add i64 %found.row, %bin
  %found.at = getelementptr i64, ptr %found, i64 %found.place
  %so.far = load i64, ptr %found.at
  %now = add i64 %so.far, 1
  store i64 %now, ptr %found.at
  %is.first = icmp eq i32 %g, 0
  br i1 %is.first, label %done, label %take
take:
  %after.at = getelementptr i32, ptr %after, i64 %line.wide
  %before.at = getelementptr i32, ptr %before, i64 %line.wide
  br i1 %is.new, label %front, label %unlink
unlink:
  %a = load i32, ptr %after.at
  %b = load i32, ptr %before.at
  %b.wide = zext i32 %b to i64
  %b.after.at = getelementptr i32, ptr %after, i64 %b.wide
  store i32 %a, ptr %b.after.at
  %has.after = icmp sge i32 %a, 0
  br i1 %has.after, label %join, label %cut
cut:
  store i32 %b, ptr %end.at
  br label %tail
join:
  %a.wide = zext i32 %a to i64
  %a.before.at = getelementptr i32, ptr %before, i64 %a.wide
  store i32 %b, ptr %a.before.at
  br label %tail
tail:
  %tail.at = getelementptr i32, ptr %tails, i64 %g.wide
  %t = load i32, ptr %tail.at
  %is.tail = icmp eq i32 %t, %line
  br i1 %is.tail, label %shorten, label %front
shorten:
  store i32 %b, ptr %tail.at
  br label %front
front:
  %head = load i32, ptr %state
  store i32 %head, ptr %after.at
  store i32 -1, ptr %before.at
  store i32 %line, ptr %state
  store i32 0, ptr %group.at
  %has.head = icmp sge i32 %head, 0
  br i1 %has.head, label %link, label %begin
begin:
  store i32 %line, ptr %end.at
  br label %shift.start
link:
  %head.wide = zext i32 %head to i64
  %head.before.at = getelementptr i32, ptr %before, i64 %head.wide
  store i32 %line, ptr %head.before.at
  br label %shift.start
shift.start:
  br label %shift
shift:
  %k = phi i64 [ 0, %shift.start ], [ %k.next, %onward ]
  %is.mine = icmp eq i64 %k, %bin
  br i1 %is.mine, label %done, label %full
full:
  %last.at = getelementptr i32, ptr %tails, i64 %k
  %last = load i32, ptr %last.at
  %is.full = icmp sge i32 %last, 0
  br i1 %is.full, label %onward, label %grow
onward:
  %last.wide = zext i32 %last to i64
  %last.group.at = getelementptr i32, ptr %group, i64 %last.wide
  %k.next = add i64 %k, 1
  %k.small = trunc i64 %k.next to i32
  store i32 %k.small, ptr %last.group.at
  %last.before.at = getelementptr i32, ptr %before, i64 %last.wide
  %new.last = load i32, ptr %last.before.at
  store i32 %new.last, ptr %last.at
  br label %shift
grow:
  ; a group that is not full takes what moved into it; when it is full, the end of the list is its last
  %size.at = getelementptr i64, ptr %sizes, i64 %k
  %size = load i64, ptr %size.at
  %size.next = add i64 %size, 1
  store i64 %size.next, ptr %size.at
  %k.less = add i64 %k, -1
  %room.shifted = shl i64 1, %k.less
  %is.zero = icmp eq i64 %k, 0
  %room = select i1 %is.zero, i64 1, i64 %room.shifted
  %fills = icmp eq i64 %size.next, %room
  br i1 %fills, label %fill, label %done
fill:
  %end = load i32, ptr %end.at
  store i32 %end, ptr %last.at
  br label %done
done:
  %i.next = add i64 %i, 1
  %c.up = add i64 %c, 1
  %is.end = icmp eq i64 %c.up, %width
  %c.next = select i1 %is.end, i64 0, i64 %c.up
  br label %next
exit:
  ret void
}
