/** The faults. Each one has an end, and PostgreSQL must serve both kinds of nodes after it. */
import type { Node } from '../chaos/cluster.ts'
import { freezeReplay, type Member, type Servers, useConnections } from './servers.ts'

export interface ClusterFault {
  name: string
  /** How long it lasts. 0: it has no end of its own. */
  lastsMs: number
  /** The alerts that must fire before the fault ends. Default: none. */
  alerts?: string[]
  /** Returns what ends the fault. */
  begin(servers: Servers, leader: Member, nodes: Node[]): Promise<() => void> | (() => void)
}

const SECOND = 1_000
/** An outage alerts within this time. */
const ALERTED_MS = 60 * SECOND
/** MusterDown takes longer. */
const DOWN_ALERTED_MS = 110 * SECOND
/** deploy/cluster/ permits 197 to users without privileges. */
const MOST_CONNECTIONS = 185
const nothing = (): void => undefined

const standbysOf = ({ members }: Servers, leader: Member): Member[] =>
  members.filter((member) => member !== leader)

/** The faults that `--short` causes come first. */
export const clusterFaults: ClusterFault[] = [
  {
    name: 'switchover',
    lastsMs: 0,
    begin: (servers) => servers.switchover().then(() => nothing),
  },
  {
    name: 'primary killed',
    lastsMs: 30 * SECOND,
    begin(_, leader) {
      leader.signal('SIGKILL')
      return leader.start
    },
  },
  {
    name: 'standbys frozen',
    lastsMs: ALERTED_MS,
    alerts: ['MusterCommitsWaiting', 'MusterNoWrites'],
    begin(servers, leader) {
      const standbys = standbysOf(servers, leader)
      for (const standby of standbys) standby.signal('SIGSTOP')
      return () => {
        for (const standby of standbys) standby.signal('SIGCONT')
      }
    },
  },
  {
    name: 'PostgreSQL of the primary killed',
    // Patroni notices within loop_wait, and calls the primary healthy until then.
    lastsMs: 10 * SECOND,
    begin(_, leader) {
      leader.signalPostgres('SIGKILL')
      return nothing
    },
  },
  {
    name: 'primary frozen',
    lastsMs: 60 * SECOND,
    begin(_, leader) {
      leader.signal('SIGSTOP')
      return () => leader.signal('SIGCONT')
    },
  },
  {
    name: 'PostgreSQL of the primary frozen',
    lastsMs: 60 * SECOND,
    begin(_, leader) {
      leader.signalPostgres('SIGSTOP')
      return () => leader.signalPostgres('SIGCONT')
    },
  },
  {
    name: 'one standby frozen',
    lastsMs: 30 * SECOND,
    async begin(servers, leader) {
      const standby = (await servers.findSynchronous(leader)) ?? leader
      standby.signal('SIGSTOP')
      return () => standby.signal('SIGCONT')
    },
  },
  {
    name: 'one standby killed',
    lastsMs: 30 * SECOND,
    async begin(servers, leader) {
      const synchronous = await servers.findSynchronous(leader)
      const standby = standbysOf(servers, leader).find((member) => member !== synchronous)
      standby?.signal('SIGKILL')
      return () => standby?.start()
    },
  },
  {
    name: 'replay on standbys frozen',
    lastsMs: 30 * SECOND,
    begin: (servers, leader) => freezeReplay(standbysOf(servers, leader)),
  },
  {
    name: 'HAProxy frozen',
    lastsMs: 20 * SECOND,
    begin({ haproxy }) {
      haproxy.signal('SIGSTOP')
      return () => haproxy.signal('SIGCONT')
    },
  },
  {
    name: 'HAProxy killed',
    lastsMs: 5 * SECOND,
    begin({ haproxy }) {
      haproxy.signal('SIGKILL')
      return haproxy.start
    },
  },
  {
    name: 'etcd frozen',
    lastsMs: 40 * SECOND,
    begin({ etcd }) {
      etcd.signal('SIGSTOP')
      return () => etcd.signal('SIGCONT')
    },
  },
  {
    name: 'etcd killed',
    lastsMs: 40 * SECOND,
    begin({ etcd }) {
      etcd.signal('SIGKILL')
      return etcd.start
    },
  },
  {
    name: 'nodes cut from HAProxy',
    lastsMs: ALERTED_MS,
    alerts: ['MusterDatabaseUnreachable'],
    begin({ haproxyLink }) {
      haproxyLink.cut()
      return haproxyLink.restore
    },
  },
  {
    name: 'primary cut from etcd',
    lastsMs: 40 * SECOND,
    begin(_, { etcdLink }) {
      etcdLink.cut()
      return etcdLink.restore
    },
  },
  {
    name: 'primary cut from standbys and nodes',
    lastsMs: ALERTED_MS,
    alerts: ['MusterDatabaseUnreachable', 'MusterNoReads', 'MusterNoWrites'],
    begin(_, { link }) {
      link.cut()
      return link.restore
    },
  },
  {
    name: 'connections used up',
    lastsMs: ALERTED_MS,
    alerts: ['MusterConnectionsNearMaximum'],
    begin: (_, leader) => useConnections(leader, MOST_CONNECTIONS),
  },
  {
    name: 'nodes frozen',
    lastsMs: DOWN_ALERTED_MS,
    alerts: ['MusterDown', 'MusterNoReads', 'MusterNoWrites'],
    begin(_servers, _leader, nodes) {
      for (const node of nodes) node.freeze()
      return () => {
        for (const node of nodes) node.thaw()
      }
    },
  },
]

export const SHORT_FAULTS = clusterFaults.slice(0, 3).map(({ name }) => name)
