-- functions/post_fitting_groups.sql makes what these two made.
-- Locks: none that anything waits for.
drop function if exists farebox.post_fitting_charges;
drop function if exists farebox.post_fitting_spends;
delete from farebox.functions where name in ('post_fitting_charges', 'post_fitting_spends');
