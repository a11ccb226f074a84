#!/bin/bash
# Networks of a guest, for guest.sh to include.

# N soft NICs: devices rxe0, rxe1, ... on interfaces nic0, nic1, ..., 10.77.0.1 and fd77::1, and so on, each with a cable to a port
# (port0, port1, ...) of one switch.
#
# A kernel sends what is for one of its own addresses over loopback, where nothing can be cut. So rules lead packets out of the
# interface whose address they come from, and only what has come in by an interface is taken for local. An interface would not ask
# for an address that its own kernel has: all know each other's.
addDevices() { # N
  local count=$1 i
  echo 1 >/proc/sys/net/ipv4/conf/all/accept_local
  interfaces "$count" | ip -batch -
  addresses "$count" 10.77.0. 32 24 | ip -4 -batch -
  addresses "$count" fd77:: 128 64 nodad | ip -6 -batch -
  for ((i = 0; i < count; ++i)); do
    rdma link add "rxe$i" type rxe netdev "nic$i"
  done
}

interfaces() { # N [FIRST]: commands of ip; FIRST is the number of nic0
  local i
  echo "link add switch type bridge"
  echo "link set switch mtu 4200 up"
  for ((i = 0; i < $1; ++i)); do
    echo "link add nic$i mtu 4200 address 52:54:77:00:00:$((10 + ${2:-0} + i)) type veth peer name port$i mtu 4200"
    echo "link set port$i master switch up"
    echo "link set nic$i up"
  done
}

addresses() { # N PREFIX BITS-OF-AN-ADDRESS BITS-OF-THE-SUBNET [nodad]: commands of ip; with nodad addresses are in use at once
  local i j own
  for ((i = 0; i < $1; ++i)); do
    own=$2$((i + 1))
    echo "address add $own/$3 dev nic$i ${5:-}"
    echo "route add ${2}0/$4 dev nic$i src $own table $((100 + i))"
    echo "rule add pref 10 iif nic$i lookup local"
    echo "rule add pref 20 from $own to $own lookup local"
    echo "rule add pref 30 from $own to ${2}0/$4 lookup $((100 + i))"
    for ((j = 0; j < $1; ++j)); do
      [ "$i" -eq "$j" ] || echo "neighbour replace $2$((j + 1)) lladdr 52:54:77:00:00:$((10 + j)) dev nic$i nud permanent"
    done
  done
  echo "rule add pref 40 lookup local"
  echo "rule del pref 0"
}

# One of two guests: rxe0 on nic0, 10.77.0.1 and fd77::1 on host a, ...2 on b. The switch goes on in the other guest. A second cable,
# 10.78.0.1 and 10.78.0.2, is for host.py, so that commands reach a host whose first cable is cut.
addCables() { # INDEX
  local number=$(($1 + 1))
  echo 1 >/proc/sys/net/ipv4/conf/all/arp_ignore # or the switch answers, too, and gets what is for nic0
  printf '%s\n' "127.0.0.1 localhost" "10.77.0.1 a" "10.77.0.2 b" "fd77::1 a" "fd77::2 b" >/etc/hosts
  {
    interfaces 1 "$1"
    echo "link set vec0 master switch up"
    echo "link set vec1 name control up"
    echo "address add 10.77.0.$number/24 dev nic0"
    echo "address add fd77::$number/64 dev nic0 nodad"
    echo "address add 10.78.0.$number/24 dev control"
  } | ip -batch -
  rdma link add rxe0 type rxe netdev nic0
}
