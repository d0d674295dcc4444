"""From a ScheduleItem to a compiled kernel: opts chosen or searched for, lowered, compiled by several threads, kept."""
