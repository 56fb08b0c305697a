#include "parity/program/probes.h"

#include <ATen/CPUGeneratorImpl.h>
#include <torch/types.h>

#include <algorithm>
#include <limits>

namespace posenc::parity {
namespace {

constexpr uint64_t kSeed = 20170612;             // the date of "Attention Is All You Need"
constexpr int64_t kLongest = 256;                // sequence length for attention, in tokens
constexpr int64_t kElements = int64_t{1} << 24;  // of an output, for inputs that may be large

at::Generator generator() { return at::make_generator<at::CPUGeneratorImpl>(kSeed); }

at::Tensor random_ids(int64_t bound, at::IntArrayRef shape, at::Generator& source) {
  return torch::randint(bound, shape, source, torch::kLong);
}

at::Tensor random_vectors(at::IntArrayRef shape, const Counterpart& made, at::Generator& source) {
  return torch::randn(shape, source, torch::kDouble).to(made.type());
}

int64_t max_len(const Counterpart& made, int64_t otherwise) {
  const auto at = made.sizes.find("max_len");
  return at == made.sizes.end() ? otherwise : at->second;
}

std::vector<Probe> timestep_probes(int64_t steps) {
  auto source = generator();
  return {
      {"one timestep", {{"input", random_ids(steps, {1}, source)}}},
      {"first and last", {{"input", torch::tensor({int64_t{0}, steps - 1})}}},
      {"repeated", {{"input", torch::full({4}, steps / 2, torch::kLong)}}},
      {"column (16, 1)", {{"input", random_ids(steps, {16, 1}, source)}}},
      {"every timestep", {{"input", torch::arange(std::min<int64_t>(steps, 4096))}}},
  };
}

// Ids or positions (B, L), or vectors (B, L, d_model).
std::vector<Probe> single_probes(const Counterpart& made) {
  auto source = generator();
  const bool is_ids = made.kind.input == Input::Ids || made.kind.input == Input::Positions;
  constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();
  const int64_t longest = made.kind.input == Input::Positions ? kNoLimit : max_len(made, kNoLimit);
  const int64_t bound =
      made.kind.input == Input::Ids ? made.sizes.at("vocab_size") : max_len(made, 0);
  const int64_t d_model = made.sizes.at("d_model"), some = std::min<int64_t>(7, longest);
  const auto random = [&](int64_t batch, int64_t length) {
    length = std::min(length, longest);
    return is_ids ? random_ids(bound, {batch, length}, source)
                  : random_vectors({batch, length, d_model}, made, source);
  };
  std::vector<Probe> result;
  const auto add = [&](const std::string& name, const at::Tensor& input) {
    result.push_back({name, {{"input", input}}});
  };
  add("length 1", random(1, 1));
  if (is_ids) {
    const auto ends = torch::tensor({int64_t{0}, bound - 1});
    add("first and last id", longest > 1 ? ends.view({1, 2}) : ends.view({2, 1}));
    add("repeated ids", torch::full({2, std::min<int64_t>(9, longest)}, bound / 2, torch::kLong));
  }
  add("batch of 1", random(1, 17));
  add("batch of 5", random(5, 33));
  if (!is_ids) add("zeros", torch::zeros({2, some, d_model}, made.type()));
  if (made.kind.input == Input::Embeddings) {
    const auto special = torch::tensor({0.0, -0.0, 1e-42, -1e30, 6e4, 1.0 / 3.0,
                                        std::numeric_limits<double>::infinity()})
                             .to(made.type());
    add("special values",
        special.index({torch::arange(some * d_model).remainder(7)}).view({1, some, d_model}));
  }
  if (longest < kNoLimit) {
    add("max_len", random(1, longest));
    add("max_len, batch of 3", random(3, longest));
  } else if (is_ids) {
    const int64_t all = std::min(bound, std::max<int64_t>(1, kElements / d_model));
    add(all == bound ? "every id" : "many ids", torch::arange(all).view({1, all}));
  }
  return result;
}

// `batch` sequences of `source` and `target` tokens: ids, or vectors in the counterpart's layout.
Call sequences(const Counterpart& made, int64_t batch, int64_t source, int64_t target,
               at::Generator& from) {
  Call call;
  for (const auto& name : made.kind.inputs) {
    const int64_t length = name == "tgt" ? target : source;
    if (made.kind.input == Input::Sentences) {
      call[name] = random_ids(made.sizes.at(name + "_vocab"), {batch, length}, from);
    } else {
      const auto x = random_vectors({batch, length, made.sizes.at("d_model")}, made, from);
      call[name] = made.batch_first() ? x : x.transpose(0, 1).contiguous();
    }
  }
  return call;
}

// True means blocked. The first key is never blocked, because Python's fast path returns NaN for a
// query without any key.
at::Tensor random_mask(const std::string& name, int64_t batch, int64_t length,
                       at::Generator& from) {
  if (name == "tgt_mask") return torch::ones({length, length}, torch::kBool).triu(1);
  const int64_t rows = name.ends_with("key_padding_mask") ? batch : length;
  auto mask = torch::rand({rows, length}, from) < 0.4;
  mask.select(1, 0).fill_(false);
  return mask;
}

std::vector<Probe> sequence_probes(const Counterpart& made, const std::set<std::string>& masks) {
  auto from = generator();
  const int64_t longest = max_len(made, 64);
  const auto at_most = [&](int64_t length) { return std::min(length, longest); };
  std::vector<Probe> result = {
      {"length 1", sequences(made, 1, 1, 1, from)},
      {"batch of 1", sequences(made, 1, at_most(17), at_most(11), from)},
      {"batch of 5", sequences(made, 5, at_most(9), at_most(13), from)},
      {longest <= kLongest ? "max_len" : "long", sequences(made, 2, at_most(kLongest), 3, from)},
  };
  if (masks.empty()) return result;
  const int64_t batch = 3, length = at_most(9);  // equal, as one source mask serves both attentions
  result.push_back({"masks", sequences(made, batch, length, length, from)});
  for (const auto& name : masks) {
    result.back().call[name] = random_mask(name, batch, length, from);
  }
  return result;
}

}  // namespace

std::vector<Probe> probes(const Counterpart& made, const std::set<std::string>& masks) {
  switch (made.kind.input) {
    case Input::Timesteps: return timestep_probes(made.sizes.at("max_len"));
    case Input::Sentences:
    case Input::Sequences: return sequence_probes(made, masks);
    default: return single_probes(made);
  }
}

std::vector<Probe> image_probes(const Counterpart& made) {
  std::vector<Probe> result;
  const int64_t channels = made.sizes.at("channels");
  for (const Probe& probe : probes(made)) {
    auto source = generator();
    const int64_t count = probe.call.at("input").size(0);
    const auto add = [&](const char* what, at::IntArrayRef shape) {
      result.push_back({probe.name + what, probe.call});
      result.back().call["image"] = random_vectors(shape, made, source);
    };
    add(", on one image", {channels, 28, 28});
    add(", on an image each", {count, channels, 5, 7});
  }
  return result;
}

}  // namespace posenc::parity
