// The forward pass: rows of the weight times a factor, plus rows of positions, times dropout's
// factor. Compiled once per instruction set, with -ffp-contract=off.
//
// The reference path is at::embedding, mul, add and dropout one after another
// (functional/embed/composed.cpp): the same operations with the same roundings, hence the same
// bits, but three or four passes over memory where this makes one. Rows of a large weight are read
// in random order, which the hardware cannot predict: while row t is computed, the same line of row
// t + 2 is prefetched. (Prefetching a whole row at once would evict lines still needed.)
#include "kernels/isa/embed_kinds.h"
#include "kernels/isa/tables.h"

namespace posenc::kernels::embed::POSENC_ISA {
namespace {

// One token's row. The pointers are to the row's first element.
template <typename K>
struct Row {
  using T = typename K::Stored;
  using P = typename K::Table::Stored;
  using V = typename K::Vector;

  const T* word = nullptr;
  const P* position = nullptr;
  T* out = nullptr;
  const uint8_t* bits = nullptr;
  int64_t first_bit = 0;
  V scale, factor;

  template <bool kPosition, bool kDropout>
  POSENC_INLINE V value(int64_t j, uint64_t kept) const {
    V x = K::rounded(K::Element::read(word + j) * scale);
    if constexpr (kPosition) x = K::rounded(x + K::Table::read(position + j));
    if constexpr (kDropout) x = K::rounded(x * spread(kept, factor));
    return K::result(x);
  }

  // Elements j .. j + kLine - 1.
  template <bool kPosition, bool kDropout, bool kStream>
  POSENC_INLINE void line(int64_t j) const {
    const uint64_t kept = kDropout ? bits_from(bits, first_bit + j) : 0;
    alignas(kLineBytes) T staged[K::kLine];
    T* const to = kStream ? staged : out + j;
#pragma GCC unroll 4
    for (int i = 0; i < K::kLine; i += K::kLanes)
      K::Element::write(to + i, value<kPosition, kDropout>(j + i, kept >> i));
    if (kStream) stream_line(out + j, staged);
  }

  // The last n elements, through a line padded with zeros.
  template <bool kPosition, bool kDropout>
  __attribute__((noinline)) void tail(int64_t j, int64_t n) const {
    T words[K::kLine] = {}, results[K::kLine];
    P positions[K::kLine] = {};
    memcpy(words, word + j, sizeof(T) * static_cast<size_t>(n));
    if (kPosition) memcpy(positions, position + j, sizeof(P) * static_cast<size_t>(n));
    Row padded = *this;
    padded.word = words;
    padded.position = positions;
    padded.out = results;
    padded.first_bit += j;
    padded.template line<kPosition, kDropout, false>(0);
    memcpy(out + j, results, sizeof(T) * static_cast<size_t>(n));
  }
};

// The slots of consecutive tokens, t / divide % count, without a division for each.
struct Slots {
  int64_t slot = 0, within = 0, divide = 1, count = 1;
  Slots() = default;
  Slots(const AddedRows& p, int64_t token)
      : slot(token / p.divide % p.count),
        within(token % p.divide),
        divide(p.divide),
        count(p.count) {}
  void next() {
    if (++within < divide) return;
    within = 0;
    if (++slot == count) slot = 0;
  }
};

template <typename K, bool kPosition, bool kDropout, bool kStream>
void rows(const EmbedRequest& g, int64_t begin, int64_t end) {
  using T = typename K::Stored;
  using P = typename K::Table::Stored;
  const T* const weight = static_cast<const T*>(g.weight);
  const AddedRows& added = g.added[0];
  const P* const table = kPosition ? static_cast<const P*>(added.table) : nullptr;
  const int64_t whole = g.dim / K::kLine * K::kLine;
  const int64_t rest = g.dim - whole;
  Slots slots = kPosition ? Slots(added, begin) : Slots{};
  Row<K> row;
  row.scale = K::broadcast(g.scale);
  row.factor = K::broadcast(g.kept.factor);
  row.bits = g.kept.bits;
  for (int64_t t = begin; t < end; ++t, slots.next()) {
    row.word = weight + g.ids[t] * g.weight_stride;
    row.out = static_cast<T*>(g.out) + t * g.dim;
    row.first_bit = t * g.dim;
    if (kPosition) {
      const int64_t position =
          added.ids.data != nullptr ? added.ids[slots.slot] : added.offset + slots.slot;
      row.position = table + position * added.stride;
    }
    const T* const ahead = weight + g.ids[t + 2 < g.tokens ? t + 2 : t] * g.weight_stride;
    for (int64_t j = 0; j < whole; j += K::kLine) {
      __builtin_prefetch(ahead + j);
      row.template line<kPosition, kDropout, kStream>(j);
    }
    if (rest > 0) row.template tail<kPosition, kDropout>(whole, rest);
  }
  if (kStream) stream_end();
}

template <typename K, bool kPosition, bool kDropout>
void rows_to(const EmbedRequest& g, int64_t begin, int64_t end) {
  // A row that starts inside a cache line cannot be streamed in lines.
  const bool lines = reinterpret_cast<uintptr_t>(g.out) % kLineBytes == 0 && g.dim % K::kLine == 0;
  if constexpr (kStreams) {
    if (g.stream && lines) return rows<K, kPosition, kDropout, true>(g, begin, end);
  }
  rows<K, kPosition, kDropout, false>(g, begin, end);
}

template <typename K>
void gather(const EmbedRequest& g, int64_t begin, int64_t end) {
  const bool position = g.tables != 0, dropout = g.kept.bits != nullptr;
  const auto run = position ? (dropout ? rows_to<K, true, true> : rows_to<K, true, false>)
                            : (dropout ? rows_to<K, false, true> : rows_to<K, false, false>);
  run(g, begin, end);
}

template <typename Integer>
int64_t first_outside_of(const Integer* ids, int64_t n, int64_t bound) {
  constexpr int64_t kBlock = 256;
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const int64_t end = begin + kBlock < n ? begin + kBlock : n;
    uint64_t outside = 0;  // a negative number is a large unsigned one
    for (int64_t i = begin; i < end; ++i)
      outside |= static_cast<uint64_t>(int64_t{ids[i]}) >= static_cast<uint64_t>(bound);
    for (int64_t i = begin; outside != 0 && i < end; ++i) {
      if (static_cast<uint64_t>(int64_t{ids[i]}) >= static_cast<uint64_t>(bound)) return i;
    }
  }
  return -1;
}

}  // namespace

const GatherKernels gather_kernels = {
    POSENC_FOR_EACH_TYPE(gather), [](const Integers& ids, int64_t n, int64_t bound) {
      return ids.wide ? first_outside_of(static_cast<const int64_t*>(ids.data), n, bound)
                      : first_outside_of(static_cast<const int32_t*>(ids.data), n, bound);
    }};

}  // namespace posenc::kernels::embed::POSENC_ISA
