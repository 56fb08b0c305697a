// Loading from a file: into any memory, in blocks, from views, and while the file changes.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/nn/module.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "posenc/weights/load.h"
#include "posenc/weights/safetensors.h"
#include "posenc/weights/save.h"
#include "weights/load/load_plan.h"
#include "weights/load/source.h"
#include "weights/support.h"

namespace posenc::testing {
namespace {

using Code = WeightsErrorCode;

struct Buffers : torch::nn::Module {
  explicit Buffers(const StateDict& like, at::ScalarType type = at::kFloat) {
    for (const auto& item : like) {
      register_buffer(item.key(), at::full(item.value().sizes(), -1.0, at::TensorOptions(type)));
    }
  }
};

StateDict three(int64_t size) {
  StateDict tensors;
  for (const char* name : {"a", "b", "c"}) tensors.insert(name, at::randn({size, 3}));
  return tensors;
}

void expect_equal(const torch::nn::Module& module, const StateDict& tensors) {
  for (const auto& item : state_dict(module)) {
    EXPECT_TRUE(at::equal(item.value(), tensors[item.key()].to(item.value().scalar_type())))
        << item.key();
  }
}

// Larger than a block (8 MB), so that a tensor spans several blocks.
TEST(LoadFile, ByBlocksWithACast) {
  const TempDir dir;
  StateDict tensors;
  tensors.insert("large", at::randn({1500, 1100}, at::kDouble));
  tensors.insert("row", at::randn({3, 900000}, at::kDouble));
  save_tensors(dir / "x", tensors);
  Buffers module(tensors);
  load_weights(module, dir / "x", LoadOptions().cast(true));
  expect_equal(module, tensors);
}

TEST(LoadFile, IntoMemoryOfAnyLayout) {
  const TempDir dir;
  StateDict tensors;
  tensors.insert("x", at::randn({2, 6, 5, 4}));
  save_tensors(dir / "x", tensors);
  const auto base = at::zeros({2, 6, 5, 8});
  for (const auto& memory : {at::zeros({4, 5, 6, 2}).permute({3, 2, 1, 0}), base.slice(3, 0, 8, 2),
                             at::zeros({2, 6, 5, 4}).contiguous(at::MemoryFormat::ChannelsLast)}) {
    torch::nn::Module module;
    module.register_buffer("x", memory);
    load_weights(module, dir / "x");
    EXPECT_TRUE(at::equal(memory, tensors["x"]));
  }
  EXPECT_TRUE(at::equal(base.slice(3, 1, 8, 2), at::zeros({2, 6, 5, 4})));
}

TEST(LoadFile, EmptyTensorsAndScalars) {
  const TempDir dir;
  StateDict tensors;
  tensors.insert("none", at::zeros({0, 3}));
  tensors.insert("scalar", at::full({}, 2.5f));
  save_tensors(dir / "x", tensors);
  Buffers module(tensors);
  load_weights(module, dir / "x");
  expect_equal(module, tensors);
}

TEST(LoadFile, IncrementsTheVersion) {
  const TempDir dir;
  StateDict tensors;
  tensors.insert("w", at::ones({2}));
  save_tensors(dir / "x", tensors);
  torch::nn::Module module;
  auto weight = module.register_parameter("w", at::zeros({2}));
  const auto loss = (weight * weight).sum();
  load_weights(module, dir / "x");
  EXPECT_TRUE(weight.requires_grad());
  EXPECT_THROW(loss.backward(), c10::Error);  // of the old weight, which is gone
}

TEST(LoadFile, BoolsOfOtherBytesAreRefused) {
  const TempDir dir;
  write_bytes(dir / "x", crafted(R"({"a":{"dtype":"BOOL","shape":[3],"data_offsets":[0,3]}} )",
                                 std::string("\0\1\2", 3)));
  torch::nn::Module module;
  module.register_buffer("a", at::zeros({3}, at::kBool));
  const auto error = error_of([&] { load_weights(module, dir / "x"); });
  EXPECT_EQ(error.code(), Code::Corrupt);
  EXPECT_EQ(error.tensor(), "a");
  EXPECT_EQ(error_of([&] { load_tensors(dir / "x"); }).code(), Code::Corrupt);
  EXPECT_TRUE(at::equal(module.named_buffers()["a"], at::zeros({3}, at::kBool)));
}

TEST(LoadFile, AFileThatShrinksNamesWhatWasWritten) {
  const TempDir dir;
  const auto tensors = three(20000);
  save_tensors(dir / "x", tensors);
  Buffers module(tensors);
  const io::FileSource source(dir / "x");
  const io::LoadPlan plan(module, source, {});
  truncate((dir / "x").c_str(), static_cast<off_t>(std::filesystem::file_size(dir / "x") - 250000));
  const auto error = error_of([&] { plan.apply(); });
  EXPECT_EQ(error.code(), Code::Truncated);
  EXPECT_EQ(error.tensor(), "b");
  EXPECT_EQ(error.file(), dir / "x");
  EXPECT_CONTAINS(
      error.what(),
      "; 1 tensors of the module had been written, and maybe a part of 'b'; load again");
  EXPECT_EQ(error.details().written, std::vector<std::string>{"a"});
  EXPECT_CONTAINS(error.remedy(), "staged(true)");
}

TEST(LoadFile, StagedAFileThatShrinksLeavesTheModule) {
  const TempDir dir;
  const auto tensors = three(20000);
  save_tensors(dir / "x", tensors);
  Buffers module(tensors);
  const auto before = all_bits(module);
  const io::FileSource source(dir / "x");
  io::LoadPlan plan(module, source, {});
  truncate((dir / "x").c_str(), 150000);
  EXPECT_EQ(error_of([&] { plan.stage(); }).code(), Code::Truncated);
  EXPECT_EQ(all_bits(module), before);

  save_tensors(dir / "x", tensors);
  load_weights(module, dir / "x", LoadOptions().staged(true));
  expect_equal(module, tensors);
}

TEST(LoadFile, AFileThatIsReplacedIsReadAsItWasOpened) {
  const TempDir dir;
  const auto old = three(50), other = three(5);
  save_tensors(dir / "x", old);
  const io::OpenWeights weights(dir / "x");
  save_tensors(dir / "x", other);
  Buffers module(old);
  const auto& first = weights.manifest.tensors.front();
  const auto into = at::empty({50, 3});
  io::copy_view(weights.view(first), into);
  EXPECT_TRUE(at::equal(into, old[first.name]));
}

TEST(LoadFile, TiedNamesMustAgreeInTheFile) {
  const TempDir dir;
  torch::nn::Module module;
  const auto weight = module.register_parameter("a", at::zeros({3000, 1000}));
  module.register_parameter("b", weight);
  StateDict tensors;
  tensors.insert("a", at::randn({3000, 1000}));
  tensors.insert("b", tensors["a"].clone());
  for (const char* name : {"x.safetensors", "x.pt"}) {
    save_tensors(dir / name, tensors);
    load_weights(module, dir / name);
    EXPECT_TRUE(at::equal(weight, tensors["a"]));
  }
  const auto before = all_bits(module);
  tensors["b"][2999][999] += 1;
  save_tensors(dir / "x", tensors);
  const auto error = error_of([&] { load_weights(module, dir / "x"); });
  EXPECT_EQ(error.code(), Code::TieConflict);
  EXPECT_CONTAINS(error.what(), "'a' and 'b' are one tensor in the module, but differ");
  EXPECT_EQ(all_bits(module), before);
}

TEST(LoadFile, TiedNamesMustAgreeAsTheModuleWouldHaveThem) {
  const TempDir dir;
  torch::nn::Module module;
  const auto weight = module.register_parameter("a", at::zeros({30, 10}));
  module.register_parameter("b", weight);
  StateDict tensors;
  tensors.insert("a", at::randn({30, 10}).to(at::kHalf));
  tensors.insert("b", tensors["a"].to(at::kDouble));
  const auto options = LoadOptions().cast(true);
  for (const char* name : {"x.safetensors", "x.pt"}) {
    save_tensors(dir / name, tensors);
    load_weights(module, dir / name, options);
    EXPECT_TRUE(at::equal(weight, tensors["a"].to(at::kFloat)));
  }
  const auto before = all_bits(module);
  tensors["b"][29][9] += 1;
  save_tensors(dir / "x", tensors);
  const auto error = error_of([&] { load_weights(module, dir / "x", options); });
  EXPECT_EQ(error.code(), Code::TieConflict);
  EXPECT_EQ(error_of([&] { load_state_dict(module, tensors, options); }).code(), Code::TieConflict);
  EXPECT_EQ(all_bits(module), before);
}

}  // namespace
}  // namespace posenc::testing
