#include "io/read/pickle/pickle.h"

#include <bit>

namespace posenc::io {

PickleId Pickle::add(PickleKind kind) {
  budget_.spend(sizeof(Node));
  nodes_.push_back({kind, {kNoObject, kNoObject, 0, kNoObject, kNoObject, kNoObject}});
  return nodes_.size() - 1;
}

PickleId Pickle::add_scalar(PickleKind kind, uint64_t bits) {
  const PickleId id = add(kind);
  nodes_[id].fields[0] = static_cast<uint32_t>(bits);
  nodes_[id].fields[1] = static_cast<uint32_t>(bits >> 32);
  return id;
}

PickleId Pickle::add_text(PickleKind kind, std::size_t offset, std::size_t size) {
  const PickleId id = add(kind);
  nodes_[id].fields[0] = static_cast<uint32_t>(offset);
  nodes_[id].fields[1] = static_cast<uint32_t>(size);
  return id;
}

PickleId Pickle::add_global(PickleId module, PickleId name) {
  const PickleId id = add(PickleKind::Global);
  nodes_[id].fields[0] = module;
  nodes_[id].fields[1] = name;
  return id;
}

PickleId Pickle::add_container(PickleKind kind) { return add(kind); }

PickleId Pickle::add_call(PickleId callable, PickleId arguments) {
  const PickleId id = add(PickleKind::Call);
  nodes_[id].fields[kCallable] = callable;
  nodes_[id].fields[kArguments] = arguments;
  return id;
}

PickleId Pickle::add_persistent(PickleId inner) {
  const PickleId id = add(PickleKind::Persistent);
  nodes_[id].fields[kArguments] = inner;
  return id;
}

void Pickle::append(PickleId container, PickleId item) {
  budget_.spend(sizeof(Cell));
  const uint32_t at = cells_.size();
  cells_.push_back({item, kNoObject});
  auto& fields = nodes_[container].fields;
  if (fields[kFirst] == kNoObject) {
    fields[kFirst] = at;
  } else {
    cells_[fields[kLast]].next = at;
  }
  fields[kLast] = at;
  ++fields[kCount];
}

uint64_t Pickle::bits(PickleId id) const {
  return nodes_[id].fields[0] | static_cast<uint64_t>(nodes_[id].fields[1]) << 32;
}

int64_t Pickle::integer(PickleId id) const { return static_cast<int64_t>(bits(id)); }

double Pickle::real(PickleId id) const { return std::bit_cast<double>(bits(id)); }

std::string_view Pickle::text(PickleId id) const {
  return bytes_.substr(nodes_[id].fields[0], nodes_[id].fields[1]);
}

std::string Pickle::global(PickleId id) const {
  if (!is(id, PickleKind::Global)) return "";
  std::string name(text(nodes_[id].fields[0]));
  name += '.';
  return name += text(nodes_[id].fields[1]);
}

}  // namespace posenc::io
