/** PostgreSQL: an expression for a statement or transaction that may not wait for the disk or a
 *  standby when it commits. A crash of PostgreSQL may lose what it has written. */
export const WITHOUT_WAIT = "set_config('synchronous_commit', 'off', true)"
