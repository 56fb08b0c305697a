#include "weights/torch/pickle/pickle.h"

#include <bit>

namespace posenc::io {

PickleId Pickle::add(PickleKind kind, uint32_t first, uint32_t second) {
  budget_.spend(sizeof(Node));
  nodes_.push_back({kind, first, second});
  return nodes_.size() - 1;
}

PickleId Pickle::add_scalar(PickleKind kind, uint64_t bits) {
  return add(kind, static_cast<uint32_t>(bits), static_cast<uint32_t>(bits >> 32));
}

PickleId Pickle::add_text(PickleKind kind, std::size_t offset, std::size_t size) {
  return add(kind, static_cast<uint32_t>(offset), static_cast<uint32_t>(size));
}

PickleId Pickle::add_global(PickleId module, PickleId name) {
  return add(PickleKind::Global, module, name);
}

PickleId Pickle::add_container(PickleKind kind) { return add(kind); }

PickleId Pickle::add_call(PickleId callable, PickleId arguments) {
  budget_.spend(sizeof(CallParts));
  calls_.push_back({callable, arguments, kNoObject, PickleKind::None});
  return add(PickleKind::Call, kNoObject, calls_.size() - 1);
}

PickleId Pickle::add_persistent(PickleId inner) { return add(PickleKind::Persistent, inner); }

void Pickle::append(PickleId container, PickleId item) {
  budget_.spend(sizeof(Cell));
  const uint32_t at = cells_.size();
  cells_.push_back({item, kNoObject});
  uint32_t& run = nodes_[container].first;
  if (run == kNoObject) {
    budget_.spend(sizeof(Run));
    run = runs_.size();
    runs_.push_back({at, at, 1});
    return;
  }
  cells_[runs_[run].last].next = at;
  runs_[run].last = at;
  ++runs_[run].count;
}

uint64_t Pickle::bits(PickleId id) const {
  return nodes_[id].first | static_cast<uint64_t>(nodes_[id].second) << 32;
}

int64_t Pickle::integer(PickleId id) const { return static_cast<int64_t>(bits(id)); }

double Pickle::real(PickleId id) const { return std::bit_cast<double>(bits(id)); }

std::string_view Pickle::text(PickleId id) const {
  budget_.work(text_size(id));
  return bytes_.substr(nodes_[id].first, nodes_[id].second);
}

std::string Pickle::global(PickleId id) const {
  if (!is(id, PickleKind::Global)) return "";
  std::string name(text(nodes_[id].first));
  name += '.';
  return name += text(nodes_[id].second);
}

}  // namespace posenc::io
