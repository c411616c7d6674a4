-- An approval whose workflow was terminated before it mailed the owner told nobody until it expired. Its workflow is now
-- started again, at intervals, and `begun_at` then says when. The previous release only asks whether it is null.
-- Locks: SHARE UPDATE EXCLUSIVE on approvals, for a change of the catalog alone.
comment on column farebox.approvals.begun_at is
  'When its workflow first read it, or was last started again because the owner was not mailed.';
