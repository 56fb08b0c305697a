// Tensors of a module that share memory: tied by set_data(), overlapping in part, or with the
// source that is loaded.
#include <ATen/ATen.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/linear.h>

#include "posenc/weights/load.h"
#include "posenc/weights/save.h"
#include "weights/support.h"

namespace posenc::testing {
namespace {

using Code = WeightsErrorCode;
using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

StateDict named_dict(const NamedTensors& items) {
  StateDict tensors;
  for (const auto& [name, tensor] : items) tensors.insert(name, tensor);
  return tensors;
}

struct Sharing : torch::nn::Module {
  explicit Sharing(const NamedTensors& items) {
    for (const auto& [name, tensor] : items) register_buffer(name, tensor);
  }
};

// Loads from a file and from memory, staged or not.
class SharedMemory : public ::testing::TestWithParam<std::tuple<bool, bool>> {
 protected:
  LoadReport load(torch::nn::Module& module, const NamedTensors& items, LoadOptions options = {}) {
    const auto [from_file, staged] = GetParam();
    options.staged(staged);
    if (!from_file) return load_state_dict(module, named_dict(items), options);
    save_tensors(dir_ / "x.safetensors", named_dict(items));
    return load_weights(module, dir_ / "x.safetensors", options);
  }
  // Returns the conflict between tensors, which must leave the module unchanged.
  std::string conflict(torch::nn::Module& module, const NamedTensors& items) {
    const auto before = all_bits(module);
    const auto error = error_of([&] { load(module, items); });
    EXPECT_EQ(error.code(), Code::TieConflict);
    EXPECT_EQ(all_bits(module), before);
    return error.what();
  }

  TempDir dir_;
};

INSTANTIATE_TEST_SUITE_P(All, SharedMemory,
                         ::testing::Combine(::testing::Bool(), ::testing::Bool()),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param) ? "File" : "Memory") +
                                  (std::get<1>(info.param) ? "Staged" : "");
                         });

// torch.nn.Module.load_state_dict() copies into both names, so that Python reports this too.
TEST_P(SharedMemory, ABackwardThroughATieBySetDataNoticesTheLoad) {
  struct Net : torch::nn::Module {
    Net() {
      register_module("a", a);
      register_module("b", b);
      b->weight.set_data(a->weight);
    }
    torch::nn::Linear a{torch::nn::LinearOptions(3, 3).bias(false)};
    torch::nn::Linear b{torch::nn::LinearOptions(3, 3).bias(false)};
  } net;
  const auto x = at::ones({2, 3}).requires_grad_();
  for (const auto& layer : {net.a, net.b}) {
    const auto y = torch::nn::Linear(layer)(x).sum();
    const auto other = at::randn({3, 3});
    load(net, {{"a.weight", other}, {"b.weight", other}});
    EXPECT_TRUE(at::equal(net.b->weight, other));
    try {
      y.backward();
      ADD_FAILURE() << "no error";
    } catch (const c10::Error& error) {
      EXPECT_CONTAINS(error.what(), "modified by an inplace operation");
    }
  }
}

TEST_P(SharedMemory, AnOverlappingTensorThatIsNotLoadedNoticesTheWriteToo) {
  const auto whole = at::zeros({6, 4});
  auto part = at::zeros({2, 4}).requires_grad_();
  part.set_data(whole.narrow(0, 0, 2));
  struct Net : torch::nn::Module {
  } net;
  net.register_buffer("whole", whole);
  net.register_parameter("part", part);
  const auto y = (part * part).sum();
  load(net, {{"whole", at::ones({6, 4})}}, LoadOptions().allow_missing(true));
  EXPECT_TRUE(part.eq(1).all().item<bool>());
  EXPECT_THROW(y.backward(), c10::Error);
}

// As a q projection beside the packed one: whichever comes last would win.
TEST_P(SharedMemory, APartMustHaveTheValuesOfTheWhole) {
  const auto whole = at::zeros({6, 4});
  Sharing module({{"in_proj", whole}, {"q", whole.narrow(0, 0, 2)}});
  const auto text =
      conflict(module, {{"in_proj", at::ones({6, 4})}, {"q", at::full({2, 4}, 5.0f)}});
  EXPECT_CONTAINS(text, "'in_proj' and 'q' overlap in the module's memory, but differ there");
  EXPECT_CONTAINS(text,
                  "LoadOptions().allow_missing(true).key_map({{\"q\", \"\"}}) keeps the first");
  load(module, {{"in_proj", at::ones({6, 4})}, {"q", at::full({2, 4}, 5.0f)}},
       LoadOptions().allow_missing(true).key_map({{"q", ""}}));
  EXPECT_TRUE(at::equal(whole, at::ones({6, 4})));

  const auto values = at::randn({6, 4});
  load(module, {{"q", values.narrow(0, 0, 2).clone()}, {"in_proj", values}});
  EXPECT_TRUE(at::equal(whole, values));
}

TEST_P(SharedMemory, ATransposeMustHaveTheValuesOfItsBase) {
  const auto w = at::zeros({3, 4});
  Sharing module({{"w", w}, {"wt", w.t()}});
  EXPECT_CONTAINS(conflict(module, {{"w", at::ones({3, 4})}, {"wt", at::full({4, 3}, 5.0f)}}),
                  "'w' and 'wt' overlap");
  const auto values = at::randn({3, 4});
  load(module, {{"w", values}, {"wt", values.t().contiguous()}});
  EXPECT_TRUE(at::equal(w, values));
}

TEST_P(SharedMemory, TheTensorsOfAConflictAreFoundAmongMany) {
  const auto flat = at::zeros({40});
  NamedTensors own = {{"flat", flat}};
  for (int i = 0; i < 10; ++i) own.emplace_back("p" + std::to_string(i), flat.narrow(0, 4 * i, 4));
  Sharing module(own);
  const auto values = at::randn({40});
  NamedTensors items = {{"flat", values}};
  for (int i = 0; i < 10; ++i) {
    items.emplace_back(own[static_cast<std::size_t>(i) + 1].first,
                       values.narrow(0, 4 * i, 4).clone());
  }
  load(module, items);
  EXPECT_TRUE(at::equal(flat, values));
  items[8].second = items[8].second + 1;
  EXPECT_CONTAINS(conflict(module, items), "'flat' and 'p7' overlap");
}

// Their addresses interleave, but no element is in both.
TEST_P(SharedMemory, NeighbouringColumnsAreNoConflict) {
  const auto w = at::zeros({3, 4});
  Sharing module({{"left", w.narrow(1, 0, 2)}, {"right", w.narrow(1, 2, 2)}});
  load(module, {{"left", at::ones({3, 2})}, {"right", at::full({3, 2}, 2.0f)}});
  EXPECT_TRUE(at::equal(w, at::cat({at::ones({3, 2}), at::full({3, 2}, 2.0f)}, 1)));
}

TEST_P(SharedMemory, AViewOfAnotherDtypeMustHaveTheSameBytes) {
  const auto w = at::zeros({4});
  Sharing module({{"w", w}, {"bytes", w.view(at::kByte)}});
  const auto values = at::randn({4});
  load(module, {{"w", values}, {"bytes", values.view(at::kByte).clone()}});
  EXPECT_TRUE(at::equal(w, values));
  conflict(module, {{"w", values}, {"bytes", at::zeros({16}, at::kByte)}});
}

TEST_P(SharedMemory, AnotherStorageOverTheSameMemoryIsFound) {
  const auto w = at::zeros({4});
  Sharing module({{"w", w}, {"again", at::from_blob(w.mutable_data_ptr(), {4}, at::kFloat)}});
  conflict(module, {{"w", at::ones({4})}, {"again", at::zeros({4})}});
}

// A lazy clone shares its memory until one of the two is written to.
TEST_P(SharedMemory, LazyClonesAreTensorsOfTheirOwn) {
  const auto w = at::zeros({4});
  Sharing module({{"w", w}, {"clone", at::_lazy_clone(w)}});
  load(module, {{"w", at::ones({4})}, {"clone", at::full({4}, 2.0f)}});
  EXPECT_TRUE(module.named_buffers()["w"].eq(1).all().item<bool>());
  EXPECT_TRUE(module.named_buffers()["clone"].eq(2).all().item<bool>());
}

TEST(OwnMemory, IsReadBeforeItIsOverwrittenUnderAnyStorage) {
  const auto a = at::full({4}, 1.0f), b = at::full({4}, 2.0f);
  Sharing module({{"a", a}, {"b", b}});
  const auto over = [](const at::Tensor& tensor) {
    return at::from_blob(tensor.mutable_data_ptr(), {4}, at::kFloat);
  };
  load_state_dict(module, named_dict({{"a", over(b)}, {"b", over(a)}}));
  EXPECT_TRUE(at::equal(a, at::full({4}, 2.0f)));
  EXPECT_TRUE(at::equal(b, at::full({4}, 1.0f)));
}

}  // namespace
}  // namespace posenc::testing
