#include "cli/modules/probes.h"

#include <ATen/CPUGeneratorImpl.h>
#include <torch/types.h>

#include <algorithm>
#include <limits>

#include "posenc/io/state_dict.h"

namespace posenc::cli {
namespace {

constexpr uint64_t kSeed = 20170612;             // the date of "Attention Is All You Need"
constexpr int64_t kLongest = 256;                // sequence length for attention, in tokens
constexpr int64_t kElements = int64_t{1} << 24;  // of an output, for inputs that may be large

using Inputs = std::vector<std::pair<std::string, at::Tensor>>;  // for modules with one input

at::Generator generator() { return at::make_generator<at::CPUGeneratorImpl>(kSeed); }

int64_t size(const ModuleSpec& spec, const std::string& name, int64_t otherwise) {
  const auto at = spec.sizes.find(name);
  return at == spec.sizes.end() ? otherwise : at->second;
}

at::Tensor random_ids(int64_t bound, at::IntArrayRef shape, at::Generator& source) {
  return torch::randint(bound, shape, source, torch::kLong);
}

// Ids below `bound` in sequences of at most `longest`.
Inputs index_probes(int64_t bound, int64_t longest, int64_t d_model) {
  auto source = generator();
  const int64_t all = std::min(bound, std::max<int64_t>(1, kElements / d_model));
  const auto ends = torch::tensor({int64_t{0}, bound - 1});
  Inputs result = {
      {"length 1", random_ids(bound, {1, 1}, source)},
      {"first and last id", longest > 1 ? ends.view({1, 2}) : ends.view({2, 1})},
      {"repeated ids", torch::full({2, std::min<int64_t>(9, longest)}, bound / 2, torch::kLong)},
      {"batch of 1", random_ids(bound, {1, std::min<int64_t>(17, longest)}, source)},
      {"batch of 5", random_ids(bound, {5, std::min<int64_t>(33, longest)}, source)},
  };
  if (longest < std::numeric_limits<int64_t>::max()) {
    result.push_back({"max_len", random_ids(bound, {1, longest}, source)});
    result.push_back({"max_len, batch of 3", random_ids(bound, {3, longest}, source)});
  } else {
    result.push_back({all == bound ? "every id" : "many ids", torch::arange(all).view({1, all})});
  }
  return result;
}

Inputs embedding_probes(const ModuleSpec& spec) {
  auto source = generator();
  const auto type = spec.table().scalar_type();
  const int64_t longest = spec.sizes.at("max_len"), d_model = spec.sizes.at("d_model");
  const auto random = [&](int64_t batch, int64_t length) {
    return torch::randn({batch, length, d_model}, source, torch::kDouble).to(type);
  };
  const auto special = torch::tensor({0.0, -0.0, 1e-42, -1e30, 6e4, 1.0 / 3.0,
                                      std::numeric_limits<double>::infinity()})
                           .to(type);
  const int64_t some = std::min<int64_t>(7, longest);
  return {
      {"length 1", random(1, 1)},
      {"batch of 1", random(1, std::min<int64_t>(17, longest))},
      {"batch of 5", random(5, std::min<int64_t>(33, longest))},
      {"zeros", torch::zeros({2, some, d_model}, type)},
      {"special values",
       special.index({torch::arange(some * d_model).remainder(7)}).view({1, some, d_model})},
      {"max_len", random(1, longest)},
      {"max_len, batch of 3", random(3, longest)},
  };
}

// (B, L, d_model), or for a module that splits heads (H, L, d_model).
Inputs vector_probes(const ModuleSpec& spec) {
  auto source = generator();
  const auto state = state_dict(*spec.module);
  const auto type = state[0].value().scalar_type();
  const int64_t d_model = spec.sizes.at("d_model");
  const auto random = [&](int64_t batch, int64_t length) {
    return torch::randn({batch, length, d_model}, source, torch::kDouble).to(type);
  };
  return {{"length 1", random(1, 1)},
          {"batch of 1", random(1, 17)},
          {"batch of 5", random(5, 33)},
          {"zeros", torch::zeros({2, 7, d_model}, type)}};
}

Inputs timestep_probes(int64_t steps) {
  auto source = generator();
  return {
      {"one timestep", random_ids(steps, {1}, source)},
      {"first and last", torch::tensor({int64_t{0}, steps - 1})},
      {"repeated", torch::full({4}, steps / 2, torch::kLong)},
      {"column (16, 1)", random_ids(steps, {16, 1}, source)},
      {"every timestep", torch::arange(std::min<int64_t>(steps, 4096))},
  };
}

Inputs single_inputs(const ModuleSpec& spec) {
  constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();
  const int64_t d_model = spec.sizes.at("d_model");
  switch (spec.input) {
    case Input::Ids:
      return index_probes(spec.sizes.at("vocab_size"), size(spec, "max_len", kNoLimit), d_model);
    case Input::Positions: return index_probes(spec.sizes.at("max_len"), kNoLimit, d_model);
    case Input::Embeddings: return embedding_probes(spec);
    case Input::Vectors: return vector_probes(spec);
    case Input::Timesteps: return timestep_probes(spec.sizes.at("max_len"));
    case Input::Sentences:
    case Input::Sequences: break;
  }
  return {};
}

// `batch` sequences of `source` and `target` tokens: ids, or vectors in the counterpart's layout.
Call sequences(const ModuleSpec& spec, int64_t batch, int64_t source, int64_t target,
               at::Generator& from) {
  Call call;
  for (const auto& name : spec.inputs) {
    const int64_t length = name == "tgt" ? target : source;
    if (spec.input == Input::Sentences) {
      call[name] = random_ids(spec.sizes.at(name + "_vocab"), {batch, length}, from);
      continue;
    }
    const auto type = spec.module->parameters().front().scalar_type();
    const auto x = torch::randn({batch, length, spec.sizes.at("d_model")}, from, torch::kDouble);
    call[name] = (spec.batch_first ? x : x.transpose(0, 1).contiguous()).to(type);
  }
  return call;
}

// True means blocked. The first key is never blocked, because Python's fast path returns NaN for a
// query without any key.
at::Tensor random_mask(const std::string& name, int64_t batch, int64_t source, int64_t target,
                       at::Generator& from) {
  const bool of_target = name.starts_with("tgt");
  const int64_t keys = of_target ? target : source;
  const int64_t rows = name.ends_with("key_padding_mask") ? batch
                       : name.starts_with("src")          ? source
                                                          : target;
  if (name == "tgt_mask") return torch::ones({target, target}, torch::kBool).triu(1);
  auto mask = torch::rand({rows, keys}, from) < 0.4;
  mask.select(1, 0).fill_(false);
  return mask;
}

std::vector<Probe> sequence_probes(const ModuleSpec& spec, const std::set<std::string>& masks) {
  auto from = generator();
  const int64_t longest = size(spec, "max_len", 64);
  const auto at_most = [&](int64_t length) { return std::min(length, longest); };
  std::vector<Probe> result = {
      {"length 1", sequences(spec, 1, 1, 1, from)},
      {"batch of 1", sequences(spec, 1, at_most(17), at_most(11), from)},
      {"batch of 5", sequences(spec, 5, at_most(9), at_most(13), from)},
      {longest <= kLongest ? "max_len" : "long", sequences(spec, 2, at_most(kLongest), 3, from)},
  };
  if (masks.empty()) return result;
  const int64_t batch = 3, length = at_most(9);  // equal, as one source mask serves both attentions
  result.push_back({"masks", sequences(spec, batch, length, length, from)});
  for (const auto& name : masks) {
    result.back().call[name] = random_mask(name, batch, length, length, from);
  }
  return result;
}

}  // namespace

std::vector<Probe> probes(const ModuleSpec& spec, const std::set<std::string>& masks) {
  if (spec.input == Input::Sentences || spec.input == Input::Sequences) {
    return sequence_probes(spec, masks);
  }
  std::vector<Probe> result;
  for (auto& [name, input] : single_inputs(spec)) result.push_back({name, {{"input", input}}});
  return result;
}

std::vector<Probe> image_probes(const ModuleSpec& spec, const Probe& probe) {
  auto source = generator();
  const auto type = spec.table().scalar_type();
  const int64_t channels = spec.sizes.at("channels"), count = probe.call.at("input").size(0);
  std::vector<Probe> result = {{probe.name + ", on one image", probe.call},
                               {probe.name + ", on an image each", probe.call}};
  const auto random = [&](at::IntArrayRef shape) {
    return torch::randn(shape, source, torch::kDouble).to(type);
  };
  result[0].call["image"] = random({channels, 28, 28});
  result[1].call["image"] = random({count, channels, 5, 7});
  return result;
}

}  // namespace posenc::cli
