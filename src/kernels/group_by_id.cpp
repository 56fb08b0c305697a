#include "kernels/group_by_id.h"

#include <algorithm>

namespace posenc::kernels::embed {
namespace {

constexpr int kDigitBits = 11;  // 2048 counters of 4 bytes: a quarter of L1
constexpr size_t kDigits = size_t{1} << kDigitBits;

struct Keyed {
  int64_t id;
  int32_t token;
};

// One stable pass of a radix sort.
void sort_by_digit(const std::vector<Keyed>& from, std::vector<Keyed>& to, int shift) {
  const auto digit = [&](const Keyed& k) {
    return static_cast<size_t>(k.id >> shift) & (kDigits - 1);
  };
  uint32_t start[kDigits + 1] = {};
  for (const Keyed& k : from) ++start[digit(k) + 1];
  for (size_t d = 1; d < kDigits; ++d) start[d] += start[d - 1];
  for (const Keyed& k : from) to[start[digit(k)]++] = k;
}

}  // namespace

TokenGroups group_by_id(const Integers& ids, int64_t n, int64_t bound, int64_t skip) {
  std::vector<Keyed> tokens, spare;
  tokens.reserve(static_cast<size_t>(n));
  for (int64_t t = 0; t < n; ++t) {
    const int64_t id = ids[t];  // read once: the value checked must be the value used as an address
    if (id != skip && id >= 0 && id < bound) tokens.push_back({id, static_cast<int32_t>(t)});
  }
  const auto by_id = [](const Keyed& a, const Keyed& b) { return a.id < b.id; };
  if (tokens.size() < 256) {  // too few to be worth clearing the counters
    std::stable_sort(tokens.begin(), tokens.end(), by_id);
  } else {
    spare.resize(tokens.size());
    for (int shift = 0; (bound - 1) >> shift > 0; shift += kDigitBits) {
      sort_by_digit(tokens, spare, shift);
      tokens.swap(spare);
    }
  }
  TokenGroups groups;
  groups.tokens.reserve(tokens.size());
  for (const Keyed& k : tokens) {
    if (groups.ids.empty() || groups.ids.back() != k.id) {
      groups.ids.push_back(k.id);
      groups.first.push_back(static_cast<int32_t>(groups.tokens.size()));
    }
    groups.tokens.push_back(k.token);
  }
  groups.first.push_back(static_cast<int32_t>(groups.tokens.size()));
  return groups;
}

int64_t first_group(const TokenGroups& groups, int64_t part, int64_t parts) {
  const auto token =
      static_cast<int32_t>(static_cast<int64_t>(groups.tokens.size()) * part / parts);
  return std::lower_bound(groups.first.begin(), groups.first.end() - 1, token) -
         groups.first.begin();
}

}  // namespace posenc::kernels::embed
