#include "cli/probes.h"

#include <ATen/CPUGeneratorImpl.h>
#include <torch/types.h>

#include <algorithm>
#include <limits>

namespace posenc::cli {
namespace {

constexpr uint64_t kSeed = 20170612;             // the day of "Attention Is All You Need"
constexpr int64_t kElements = int64_t{1} << 24;  // of an output, for the inputs that may be large

at::Generator generator() { return at::make_generator<at::CPUGeneratorImpl>(kSeed); }

int64_t size(const Twin& twin, const std::string& name, int64_t otherwise) {
  const auto at = twin.sizes.find(name);
  return at == twin.sizes.end() ? otherwise : at->second;
}

at::Tensor random_ids(int64_t bound, at::IntArrayRef shape, at::Generator& source) {
  return torch::randint(bound, shape, source, torch::kLong);
}

// Ids below `bound` in sequences of at most `longest`.
std::vector<Probe> index_probes(int64_t bound, int64_t longest, int64_t d_model) {
  auto source = generator();
  const int64_t all = std::min(bound, std::max<int64_t>(1, kElements / d_model));
  const auto ends = torch::tensor({int64_t{0}, bound - 1});
  std::vector<Probe> result = {
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

std::vector<Probe> embedding_probes(const Twin& twin) {
  auto source = generator();
  const auto type = twin.table().scalar_type();
  const int64_t longest = twin.sizes.at("max_len"), d_model = twin.sizes.at("d_model");
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

std::vector<Probe> timestep_probes(int64_t steps) {
  auto source = generator();
  return {
      {"one timestep", random_ids(steps, {1}, source)},
      {"first and last", torch::tensor({int64_t{0}, steps - 1})},
      {"repeated", torch::full({4}, steps / 2, torch::kLong)},
      {"column (16, 1)", random_ids(steps, {16, 1}, source)},
      {"every timestep", torch::arange(std::min<int64_t>(steps, 4096))},
  };
}

}  // namespace

std::vector<Probe> probes(const Twin& twin) {
  constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();
  const int64_t d_model = twin.sizes.at("d_model");
  switch (twin.input) {
    case Input::Ids:
      return index_probes(twin.sizes.at("vocab_size"), size(twin, "max_len", kNoLimit), d_model);
    case Input::Positions: return index_probes(twin.sizes.at("max_len"), kNoLimit, d_model);
    case Input::Embeddings: return embedding_probes(twin);
    case Input::Timesteps: return timestep_probes(twin.sizes.at("max_len"));
  }
  return {};
}

std::vector<Probe> image_probes(const Twin& twin, const at::Tensor& input) {
  auto source = generator();
  const auto type = twin.table().scalar_type();
  const int64_t channels = twin.sizes.at("channels");
  return {
      {"on one image", torch::randn({channels, 28, 28}, source, torch::kDouble).to(type)},
      {"on an image each",
       torch::randn({input.size(0), channels, 5, 7}, source, torch::kDouble).to(type)},
  };
}

}  // namespace posenc::cli
