// Tensors with the negative bit, which LibTorch cannot resolve for every dtype, and other errors of
// LibTorch's: a module is not left half-loaded without a word.
#include <ATen/ATen.h>
#include <torch/nn/module.h>

#include "posenc/weights/load.h"
#include "posenc/weights/safetensors.h"
#include "posenc/weights/save.h"
#include "support/python.h"
#include "weights/load/load_plan.h"
#include "weights/load/source.h"
#include "weights/support.h"

namespace posenc::testing {
namespace {

using Code = WeightsErrorCode;

constexpr at::ScalarType kWithoutNegation[] = {
    at::kBool,          at::kUInt16,      at::kUInt32,          at::kUInt64,
    at::kFloat8_e4m3fn, at::kFloat8_e5m2, at::kFloat8_e4m3fnuz, at::kFloat8_e5m2fnuz,
    at::kFloat8_e8m0fnu};
constexpr at::ScalarType kWithNegation[] = {
    at::kByte,     at::kChar,  at::kShort,  at::kInt,         at::kLong,        at::kHalf,
    at::kBFloat16, at::kFloat, at::kDouble, at::kComplexHalf, at::kComplexFloat};

at::Tensor zeros_of(at::ScalarType type) { return at::zeros({2}).to(type); }
at::Tensor ones_of(at::ScalarType type) { return at::ones({2}).to(type); }

struct FirstAndSecond : torch::nn::Module {
  explicit FirstAndSecond(const at::Tensor& second) {
    register_buffer("first", at::zeros({2}));
    register_buffer("second", second);
  }
};

StateDict first_and_second(const at::Tensor& second) {
  StateDict tensors;
  tensors.insert("first", at::ones({2}));
  tensors.insert("second", second);
  return tensors;
}

bool is_first_unchanged(const FirstAndSecond& module) {
  return at::equal(module.named_buffers()["first"], at::zeros({2}));
}

TEST(NegativeBit, OfTheModuleIsRefusedBeforeAnythingIsWritten) {
  const TempDir dir;
  for (const auto type : kWithoutNegation) {
    SCOPED_TRACE(type);
    FirstAndSecond module(at::_neg_view(zeros_of(type)));
    const auto check = [&](const auto& load) {
      const auto error = error_of(load);
      EXPECT_EQ(error.code(), Code::Module);
      EXPECT_CONTAINS(error.what(), "'second' must not have the negative bit");
      EXPECT_TRUE(is_first_unchanged(module));
    };
    check([&] { load_state_dict(module, first_and_second(ones_of(type))); });
    save_tensors(dir / "x.pt", first_and_second(ones_of(type)));
    check([&] { load_weights(module, dir / "x.pt"); });
  }
}

TEST(NegativeBit, OfTheModuleIsResolvedWhereTheDtypeHasNegation) {
  for (const auto type : kWithNegation) {
    SCOPED_TRACE(type);
    FirstAndSecond module(at::_neg_view(zeros_of(type)));
    load_state_dict(module, first_and_second(ones_of(type)));
    EXPECT_TRUE(identical(module.named_buffers()["second"], ones_of(type)));
  }
}

TEST(NegativeBit, OfTheSourceIsRefusedBeforeAnythingIsWritten) {
  for (const auto type : kWithoutNegation) {
    SCOPED_TRACE(type);
    FirstAndSecond module(zeros_of(type));
    const auto error =
        error_of([&] { load_state_dict(module, first_and_second(at::_neg_view(ones_of(type)))); });
    EXPECT_EQ(error.code(), Code::Unsupported);
    EXPECT_CONTAINS(error.what(), "'second' must not have the negative bit");
    EXPECT_TRUE(is_first_unchanged(module));
  }
}

TEST(NegativeBit, OfAFileIsRefusedBeforeAnythingIsWritten) {
  const TempDir dir;
  ASSERT_TRUE(run_python(dir,
                         "import torch\n"
                         "bools = torch._neg_view(torch.ones(2, dtype=torch.bool))\n"
                         "torch.save({'first': torch.ones(2), 'second': bools}, 'x.pt')\n"));
  FirstAndSecond module(zeros_of(at::kBool));
  const auto error = error_of([&] { load_weights(module, dir / "x.pt"); });
  EXPECT_EQ(error.code(), Code::Unsupported);
  EXPECT_CONTAINS(error.what(), "has the negative bit, and bool has no negative numbers");
  EXPECT_TRUE(is_first_unchanged(module));
  EXPECT_CONTAINS(refusal([&] { load_tensors(dir / "x.pt"); }), "tensor 'second' cannot be read");
}

TEST(NegativeBit, IsRefusedBeforeAFileIsWritten) {
  const TempDir dir;
  for (const auto type : kWithoutNegation) {
    SCOPED_TRACE(type);
    for (const char* name : {"x.pt", "x.safetensors"}) {
      const auto error = error_of(
          [&] { save_tensors(dir / name, first_and_second(at::_neg_view(ones_of(type)))); });
      EXPECT_EQ(error.code(), Code::Unsupported);
      EXPECT_EQ(error.tensor(), "second");
      EXPECT_CONTAINS(error.what(), "the negative bit");
    }
  }
  EXPECT_EQ(dir.entries(), 0u);
}

// A source whose second tensor cannot be copied.
template <typename Error>
class Failing : public io::MemorySource {
 public:
  using MemorySource::MemorySource;
  void copy_to(std::size_t index, const at::Tensor& target) const override {
    if (entries()[index].name == "second") fail(static_cast<Error*>(nullptr));
    MemorySource::copy_to(index, target);
  }

 private:
  static void fail(c10::Error*) { TORCH_CHECK(false, "no kernel of this kind"); }
  static void fail(std::bad_alloc*) { throw std::bad_alloc(); }
};

template <typename Error>
WeightsError error_of_failing() {
  FirstAndSecond module(at::zeros({2}));
  const Failing<Error> source(first_and_second(at::ones({2})), module);
  const io::LoadPlan plan(module, source, {});
  return error_of([&] { plan.apply(); });
}

TEST(ErrorsOfLibTorch, NameWhatHasBeenWritten) {
  for (const auto& error : {error_of_failing<c10::Error>(), error_of_failing<std::bad_alloc>()}) {
    EXPECT_EQ(error.code(), Code::Module);
    EXPECT_EQ(error.details().written, std::vector<std::string>{"first"});
    EXPECT_CONTAINS(error.what(), "1 tensors of the module had been written, and maybe a part of");
  }
  EXPECT_CONTAINS(error_of_failing<c10::Error>().what(), "no kernel of this kind");
}

}  // namespace
}  // namespace posenc::testing
