/** All seeded faults, see seeded-fault.ts. */
import type { Contract } from '../../scripts/model/contract.ts'
import { accessFaults } from './faults/access.ts'
import { conditionFaults } from './faults/conditions.ts'
import { deliveryFaults } from './faults/deliveries.ts'
import { eventFaults } from './faults/events.ts'
import { headerFaults } from './faults/headers.ts'
import { idempotencyFaults } from './faults/idempotency.ts'
import { ruleFaults, sizeFaults, validationFaults } from './faults/input.ts'
import { isolationFaults } from './faults/isolation.ts'
import { listFaults } from './faults/lists.ts'
import { optionalFieldFaults, protocolFaults } from './faults/protocol.ts'
import { sequenceFaults } from './faults/sequences.ts'
import { storedFaults } from './faults/stored-values.ts'
import type { Keys, SeededFault } from './seeded-fault.ts'

export function listSeededFaults(contract: Contract, keys: Keys): SeededFault[] {
  return [
    ...protocolFaults(contract),
    ...optionalFieldFaults(contract),
    ...headerFaults(contract),
    ...validationFaults(contract),
    ...sizeFaults(contract),
    ...ruleFaults(contract),
    ...accessFaults(contract, keys),
    ...conditionFaults(contract),
    ...idempotencyFaults(contract),
    ...listFaults(contract),
    ...storedFaults(contract, keys),
    ...sequenceFaults(contract),
    ...isolationFaults(contract, keys),
    ...eventFaults(contract),
    ...deliveryFaults(contract),
  ]
}
