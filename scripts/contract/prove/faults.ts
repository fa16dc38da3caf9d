/** All seeded faults. */
import type { Contract } from '../../model/contract.ts'
import { deliveryFaults } from './faults/deliveries.ts'
import { eventFaults } from './faults/events.ts'
import { sizeFaults, validationFaults } from './faults/input.ts'
import { isolationFaults, type Keys } from './faults/isolation.ts'
import { listFaults } from './faults/lists.ts'
import { headerFaults, optionalFieldFaults, protocolFaults } from './faults/protocol.ts'
import { accessFaults, conditionFaults, idempotencyFaults } from './faults/requests.ts'
import { sequenceFaults } from './faults/sequences.ts'
import { storedFaults } from './faults/stored.ts'
import type { SeededFault } from './seeded-fault.ts'

export function listSeededFaults(contract: Contract, keys: Keys): SeededFault[] {
  return [
    ...protocolFaults(contract),
    ...optionalFieldFaults(contract),
    ...headerFaults(contract),
    ...validationFaults(contract),
    ...sizeFaults(contract),
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
