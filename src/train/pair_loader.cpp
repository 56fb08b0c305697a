#include "posenc/train/pair_loader.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "core/check.h"
#include "train/parallel/fingerprint.h"

namespace posenc {
namespace {

constexpr const char* kEpoch = "epoch";
constexpr const char* kTaken = "taken";
constexpr const char* kFingerprint = "fingerprint";

// Shuffles values in the same order on every machine: the standard specifies the engine and
// seed_seq exactly, but neither std::shuffle nor the distributions.
class Shuffler {
 public:
  explicit Shuffler(int64_t seed, int64_t stream = 0) {
    const auto low = [](int64_t x) { return static_cast<uint32_t>(x); };
    const auto high = [](int64_t x) { return static_cast<uint32_t>(x >> 32); };
    std::seed_seq seeds{low(seed), high(seed), low(stream), high(stream)};
    engine_.seed(seeds);
  }

  template <typename Value>
  void operator()(std::vector<Value>& values) {
    for (std::size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[below(i)]);
  }

 private:
  std::size_t below(std::size_t n) {
    return static_cast<std::size_t>((static_cast<uint64_t>(engine_()) * n) >> 32);
  }

  std::mt19937 engine_;
};

std::size_t cost_of(std::size_t rows, std::size_t src, std::size_t tgt) {
  return rows * (src + tgt);
}

torch::Tensor padded(const std::vector<const std::vector<int64_t>*>& rows, std::size_t length,
                     int64_t pad_id) {
  auto ids = torch::empty({static_cast<int64_t>(rows.size()), static_cast<int64_t>(length)},
                          torch::TensorOptions(torch::kLong));
  auto* to = ids.mutable_data_ptr<int64_t>();
  for (const auto* row : rows) {
    std::fill(std::copy(row->begin(), row->end(), to), to + length, pad_id);
    to += length;
  }
  return ids;
}

// Without the last columns that are padding only, but with at least `least` columns. An empty batch
// keeps its columns.
torch::Tensor without_padding(const torch::Tensor& ids, int64_t pad_id, int64_t least) {
  const auto used = ids.ne(pad_id).any(0).nonzero();
  const int64_t length = used.numel() > 0 ? used.max().item<int64_t>() + 1 : ids.size(1);
  return ids.slice(1, 0, std::max(length, least)).contiguous();
}

// Padding is known by its id: within a pair, the same id would be masked beside longer pairs only.
// `first`: from which token on it counts.
void check_no_padding(const std::vector<int64_t>& ids, int64_t pad_id, const char* part,
                      std::size_t pair, std::ptrdiff_t first) {
  const auto found = std::find(ids.begin() + first, ids.end(), pad_id);
  TORCH_CHECK_VALUE(found == ids.end(), "[PairLoader] a pair must not contain pad_id, ", pad_id,
                    ", which is masked and not learnt. Got it as token ", found - ids.begin(),
                    " of the ", part, " of pair ", pair,
                    "; give another pad_id, such as the vocabulary's size, with a row for it in "
                    "the embedding");
}

// The mean loss over zero labels is NaN, which would look like a diverged run.
void check_targets(const torch::Tensor& tgt) {
  TORCH_CHECK_VALUE(
      tgt.dim() == 2 && tgt.size(1) >= 2,
      "[PairBatch] some target must have two tokens, its begin and what follows: there"
      " is nothing to predict. Got ",
      tgt.sizes());
}

}  // namespace

AttentionMask PairBatch::src_mask() const {
  return src_is_padded ? AttentionMask::padding(src, pad_id) : AttentionMask();
}

torch::Tensor PairBatch::tgt_input() const {
  check_targets(tgt);
  return tgt.slice(1, 0, -1);
}

torch::Tensor PairBatch::tgt_labels() const {
  check_targets(tgt);
  return tgt.slice(1, 1);
}

PairBatch share(const PairBatch& whole, int64_t rank, int64_t ranks) {
  TORCH_CHECK_VALUE(rank >= 0 && rank < ranks, "[share] rank must lie in [0, ", ranks, "). Got ",
                    rank);
  if (ranks == 1) return whole;
  const auto rows = [&](const torch::Tensor& ids, int64_t least) {
    return without_padding(ids.slice(0, rank, std::nullopt, ranks), whole.pad_id, least);
  };
  PairBatch part = whole;
  part.src = rows(whole.src, 1), part.tgt = rows(whole.tgt, 2);  // two: a column of labels
  const auto tokens = [&](const torch::Tensor& ids) {
    return ids.ne(whole.pad_id).sum().item<int64_t>();
  };
  // The begin of a target is a token whatever its id.
  part.tokens = tokens(part.src) + tokens(part.tgt.slice(1, 1)) + part.tgt.size(0);
  // Padding is at the end of a row.
  part.src_is_padded = whole.src_is_padded && part.src.numel() > 0 &&
                       part.src.select(1, -1).eq(whole.pad_id).any().item<bool>();
  return part;
}

PairLoader::PairLoader(std::vector<TokenPair> pairs, const PairLoaderOptions& options)
    : pairs_(std::move(pairs)), options_(options) {
  check_positive("PairLoader", "max_rows", options.max_rows());
  TORCH_CHECK_VALUE(options.max_tokens() >= 0, "[PairLoader] max_tokens must not be negative. Got ",
                    options.max_tokens());
  TORCH_CHECK_VALUE(!pairs_.empty(), "[PairLoader] at least one pair is required. Got 0");
  const auto most = static_cast<std::size_t>(options.max_tokens());
  const bool has_sources = !pairs_.front().src.empty();
  for (std::size_t i = 0; i < pairs_.size(); ++i) {
    const auto src = pairs_[i].src.size(), tgt = pairs_[i].tgt.size();
    TORCH_CHECK_VALUE((src > 0) == has_sources && tgt > 0,
                      "[PairLoader] a sequence must not be empty, but for the sources of all. Got ",
                      src, " and ", tgt, " tokens for pair ", i);
    TORCH_CHECK_VALUE(
        tgt > 1, "[PairLoader] a target must have two tokens, its begin and what follows. Got ",
        tgt, " for pair ", i, "; leave out pairs with nothing to predict");
    TORCH_CHECK_VALUE(most == 0 || cost_of(1, src, tgt) <= most,
                      "[PairLoader] a pair must have at most max_tokens ", most, " tokens. Got ",
                      cost_of(1, src, tgt), " for pair ", i);
    check_no_padding(pairs_[i].src, options.pad_id(), "source", i, 0);
    check_no_padding(pairs_[i].tgt, options.pad_id(), "target", i, 1);  // its begin is no label
  }
  fingerprint_ = fingerprint();
  batches_ = batches_of(0);
}

std::vector<PairLoader::PairIndices> PairLoader::batches_of(int64_t epoch) const {
  PairIndices order(pairs_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  Shuffler shuffle(options_.seed(), epoch);
  if (options_.shuffle()) shuffle(order);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(pairs_[a].src.size(), pairs_[a].tgt.size()) <
           std::pair(pairs_[b].src.size(), pairs_[b].tgt.size());
  });
  std::vector<PairIndices> batches;
  std::size_t src = 0, tgt = 0;  // longest sequences in the last batch
  for (const std::size_t index : order) {
    src = std::max(src, pairs_[index].src.size());
    tgt = std::max(tgt, pairs_[index].tgt.size());
    const bool fits =
        !batches.empty() && batches.back().size() < static_cast<std::size_t>(options_.max_rows()) &&
        (options_.max_tokens() == 0 || cost_of(batches.back().size() + 1, src, tgt) <=
                                           static_cast<std::size_t>(options_.max_tokens()));
    if (!fits) {
      batches.emplace_back();
      src = pairs_[index].src.size(), tgt = pairs_[index].tgt.size();
    }
    batches.back().push_back(index);
  }
  if (options_.shuffle()) shuffle(batches);
  return batches;
}

PairBatch PairLoader::next() {
  std::vector<const std::vector<int64_t>*> sources, targets;
  std::size_t src = 0, tgt = 0;
  PairBatch batch;
  for (const std::size_t index : batches_[static_cast<std::size_t>(taken_)]) {
    const TokenPair& pair = pairs_[index];
    sources.push_back(&pair.src), targets.push_back(&pair.tgt);
    src = std::max(src, pair.src.size()), tgt = std::max(tgt, pair.tgt.size());
    batch.tokens += static_cast<int64_t>(pair.src.size() + pair.tgt.size());
  }
  batch.src = padded(sources, src, options_.pad_id());
  batch.tgt = padded(targets, tgt, options_.pad_id());
  batch.src_is_padded = std::any_of(sources.begin(), sources.end(),
                                    [&](const auto* one) { return one->size() < src; });
  batch.pad_id = options_.pad_id();
  if (taken_ + 1 == static_cast<int64_t>(batches_.size())) {
    batches_ = batches_of(epoch_ + 1);
    taken_ = 0, ++epoch_;
  } else {
    ++taken_;
  }
  return batch;
}

// Hashes everything that determines the batches, as an integer that a double can represent.
double PairLoader::fingerprint() const {
  Fingerprint hash;
  for (const int64_t value : {options_.pad_id(), options_.max_rows(), options_.max_tokens(),
                              options_.seed(), static_cast<int64_t>(options_.shuffle())}) {
    hash.add(value);
  }
  for (const auto& pair : pairs_) {
    for (const auto* one : {&pair.src, &pair.tgt}) {
      hash.add(static_cast<int64_t>(one->size()));
      for (const int64_t id : *one) hash.add(id);
    }
  }
  return static_cast<double>(hash.value() >> 11);
}

CheckpointScalars PairLoader::state() const {
  return {{kEpoch, static_cast<double>(epoch_)},
          {kTaken, static_cast<double>(taken_)},
          {kFingerprint, fingerprint_}};
}

void PairLoader::restore(const CheckpointScalars& state) {
  const auto number = [&](const char* name) {
    const auto found = state.find(name);
    TORCH_CHECK_VALUE(found != state.end(), "[PairLoader] a state must have ", name);
    return found->second;
  };
  TORCH_CHECK_VALUE(number(kFingerprint) == fingerprint_,
                    "[PairLoader] a state must be of the same pairs, options and seed");
  const double epoch = number(kEpoch), taken = number(kTaken);
  TORCH_CHECK_VALUE(epoch >= 0 && epoch < 1e15, "[PairLoader] epoch must be a count. Got ", epoch);
  auto batches = batches_of(static_cast<int64_t>(epoch));
  TORCH_CHECK_VALUE(taken >= 0 && taken < static_cast<double>(batches.size()),
                    "[PairLoader] taken must lie in [0, ", batches.size(), "). Got ", taken);
  epoch_ = static_cast<int64_t>(epoch), taken_ = static_cast<int64_t>(taken);
  batches_ = std::move(batches);
}

}  // namespace posenc
