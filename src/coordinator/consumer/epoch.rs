//! The member epochs that mean something else than an epoch.

/// A member that joins, or begins anew.
pub(super) const JOIN: i32 = 0;
/// A member that leaves.
pub(super) const LEAVE: i32 = -1;
/// A static member that leaves for a while; also what is recorded of it until it returns.
pub(super) const LEAVE_FOR_A_WHILE: i32 = -2;
