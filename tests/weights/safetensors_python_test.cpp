// The reference implementation reads what we write, and we read what it writes.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <string>

#include "posenc/weights/safetensors.h"
#include "support/python.h"
#include "weights/support.h"

namespace posenc::testing {
namespace {

// Python's safetensors 0.8 has no torch dtype for F8_E8M0.
StateDict every_dtype() {
  StateDict tensors;
  const auto integers = at::arange(-3, 9).view({3, 4});
  for (const auto type : {at::kChar, at::kByte, at::kShort, at::kUInt16, at::kInt, at::kUInt32,
                          at::kLong, at::kUInt64, at::kBool, at::kHalf, at::kBFloat16, at::kFloat,
                          at::kDouble, at::kComplexFloat, at::kFloat8_e4m3fn, at::kFloat8_e5m2,
                          at::kFloat8_e4m3fnuz, at::kFloat8_e5m2fnuz}) {
    const std::string name = c10::toString(type);
    tensors.insert(name, integers.to(at::kFloat).abs().to(type));
    tensors.insert(name + ".scalar", at::ones({}, at::kFloat).to(type));
    tensors.insert(name + ".empty", at::ones({0, 2}, at::kFloat).to(type));
  }
  return tensors;
}

TEST(SafetensorsPython, ReadsOursAndWritesTheSameBack) {
  ASSERT_TRUE(python_has("torch, safetensors.torch")) << POSENC_PYTHON;
  const TempDir dir;
  const auto saved = every_dtype();
  save_safetensors(dir / "ours.safetensors", saved, {{"slug", "größe"}, {"torch", "2"}});
  ASSERT_TRUE(run_python(dir, R"(
import safetensors, safetensors.torch, torch
with safetensors.safe_open("ours.safetensors", "pt") as file:
    assert file.metadata() == {"slug": "größe", "torch": "2"}, file.metadata()
tensors = safetensors.torch.load_file("ours.safetensors")
assert len(tensors) == 54, len(tensors)
assert tensors["Float"].tolist() == [[3, 2, 1, 0], [1, 2, 3, 4], [5, 6, 7, 8]]
assert tensors["Short"].dtype == torch.int16 and tensors["Short"].tolist()[0] == [3, 2, 1, 0]
assert tensors["BFloat16.scalar"].shape == () and tensors["BFloat16.scalar"].item() == 1
assert tensors["UInt64.empty"].shape == (0, 2) and tensors["UInt64"].dtype == torch.uint64
safetensors.torch.save_file(tensors, "theirs.safetensors", {"made": "by Python"})
)"));
  const auto theirs = load_safetensors(dir / "theirs.safetensors");
  EXPECT_EQ(theirs.metadata.at("made"), "by Python");
  EXPECT_EQ(theirs.tensors.size(), saved.size());
  for (const auto& item : saved) {
    EXPECT_TRUE(identical(theirs.tensors[item.key()], item.value())) << item.key();
  }
}

// safetensors 0.8 reads F4 by safe_open() only.
TEST(SafetensorsPython, AgreesOnPairsOfFloat4) {
  ASSERT_TRUE(python_has("torch, safetensors.torch")) << POSENC_PYTHON;
  const TempDir dir;
  StateDict saved;
  saved.insert("x", at::arange(24, at::kByte).view({4, 6}).view(at::kFloat4_e2m1fn_x2));
  saved.insert("empty", at::empty({0, 2}, at::kFloat4_e2m1fn_x2));
  save_safetensors(dir / "ours.safetensors", saved);
  ASSERT_TRUE(run_python(dir, R"(
import safetensors, safetensors.torch, torch
with safetensors.safe_open("ours.safetensors", "pt") as file:
    tensors = {name: file.get_tensor(name) for name in file.keys()}
assert tensors["x"].dtype == torch.float4_e2m1fn_x2 and tensors["x"].shape == (4, 6), tensors["x"].shape
assert tensors["x"].view(torch.uint8).flatten().tolist() == list(range(24))
assert tensors["empty"].shape == (0, 2), tensors["empty"].shape
safetensors.torch.save_file(tensors, "theirs.safetensors")
)"));
  const auto theirs = load_safetensors(dir / "theirs.safetensors").tensors;
  ASSERT_EQ(theirs.size(), 2u);
  for (const auto& item : saved) {
    EXPECT_TRUE(identical(theirs[item.key()], item.value())) << item.key();
  }
}

}  // namespace
}  // namespace posenc::testing
