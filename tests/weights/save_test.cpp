// save_weights in both formats, read back here and by Python.
#include "posenc/weights/save.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/linear.h>

#include <filesystem>
#include <string>
#include <vector>

#include "posenc/core/state_dict_traits.h"
#include "posenc/weights/load.h"
#include "posenc/weights/safetensors.h"
#include "support/python.h"
#include "weights/files.h"
#include "weights/support.h"

namespace posenc::testing::save_test {
namespace {

using Code = WeightsErrorCode;

constexpr at::ScalarType kTypes[] = {
    at::kByte,          at::kChar,        at::kShort,           at::kInt,
    at::kLong,          at::kUInt16,      at::kUInt32,          at::kUInt64,
    at::kHalf,          at::kBFloat16,    at::kFloat,           at::kDouble,
    at::kBool,          at::kComplexHalf, at::kComplexFloat,    at::kComplexDouble,
    at::kFloat8_e4m3fn, at::kFloat8_e5m2, at::kFloat8_e4m3fnuz, at::kFloat8_e5m2fnuz};

StateDict every_dtype() {
  StateDict tensors;
  for (const auto type : kTypes) {
    const std::string name = c10::toString(type);
    const auto values = at::arange(6, at::kFloat).view({2, 3});
    tensors.insert(name, (type == at::kBool ? values.remainder(2) : values).to(type));
    tensors.insert(name + ".scalar", at::ones({}, at::kFloat).to(type));
    tensors.insert(name + ".empty", at::ones({0, 2}, at::kFloat).to(type));
  }
  return tensors;
}

// Views of all kinds.
StateDict views() {
  const auto base = at::arange(24, at::kFloat).view({4, 6});
  const auto complex = at::complex(base, base + 100);
  StateDict tensors;
  tensors.insert("base", base);
  tensors.insert("tied", base);
  tensors.insert("transposed", base.t());
  tensors.insert("part", base.slice(1, 1, 6, 2));
  tensors.insert("expanded", at::full({1}, 3.0f).expand({4, 3}));
  tensors.insert("alone", at::arange(100).slice(0, 40, 60, 3));
  tensors.insert("conj", complex.conj());
  tensors.insert("neg", at::imag(complex.conj()));
  tensors.insert("größe \"'", at::ones({1}).requires_grad_());
  return tensors;
}

TEST(Save, TheExtensionChoosesTheFormat) {
  const TempDir dir;
  const torch::nn::Linear module(2, 3);
  const auto begins = [&](const std::string& name, SaveOptions options = {}) {
    save_weights(*module, dir / name, options);
    return read_bytes(dir / name).substr(0, 2);
  };
  EXPECT_EQ(begins("x.pt"), "PK");
  EXPECT_EQ(begins("x.pth"), "PK");
  EXPECT_NE(begins("x.safetensors"), "PK");
  EXPECT_NE(begins("x.bin"), "PK");
  EXPECT_NE(begins("x.pt", SaveOptions().format(SaveFormat::Safetensors)), "PK");
  EXPECT_EQ(begins("x", SaveOptions().format(SaveFormat::TorchSave)), "PK");
  EXPECT_EQ(load_safetensors(dir / "x.safetensors").metadata.at("format"), "pt");
}

TEST(Save, EveryTypeComesBack) {
  const TempDir dir;
  const auto tensors = every_dtype();
  save_tensors(dir / "x.pt", tensors);
  const auto loaded = load_tensors(dir / "x.pt");
  ASSERT_EQ(names(loaded), names(tensors));
  for (const auto& item : tensors) {
    EXPECT_TRUE(identical(loaded[item.key()], item.value())) << item.key();
  }
}

TEST(Save, ViewsComeBackAndShareWhatTheyShared) {
  const TempDir dir;
  const auto tensors = views();
  save_tensors(dir / "x.pt", tensors);
  const auto loaded = load_tensors(dir / "x.pt");
  for (const auto& item : tensors) {
    EXPECT_TRUE(at::equal(loaded[item.key()], item.value())) << item.key();
  }
  for (const char* name : {"tied", "transposed", "part"}) {
    EXPECT_TRUE(loaded[name].is_alias_of(loaded["base"])) << name;
  }
  EXPECT_FALSE(loaded["alone"].is_alias_of(loaded["base"]));
  EXPECT_LT(std::filesystem::file_size(dir / "x.pt"), 6000u);  // a lone view: only its elements
}

TEST(Save, LeavesNonPersistentOnesOutAndWritesTies) {
  struct WithTraits : torch::nn::Module, StateDictTraits {
    WithTraits() {
      register_parameter("table", at::ones({2}));
      register_buffer("scratch", at::ones({2}));
    }
    std::vector<TiedName> tied_names() const override { return {{"output", "table"}}; }
    std::vector<std::string> non_persistent_names() const override { return {"scratch"}; }
  } module;
  const TempDir dir;
  for (const char* name : {"x.pt", "x.safetensors"}) {
    save_weights(module, dir / name);
    EXPECT_EQ(names(load_tensors(dir / name)), (std::vector<std::string>{"table", "output"}));
  }
}

TEST(Save, PythonReadsTorchSave) {
  const TempDir dir;
  save_tensors(dir / "types.pt", every_dtype());
  save_tensors(dir / "views.pt", views());
  StateDict many;
  for (int i = 0; i < 300; ++i) many.insert(std::to_string(i), at::full({i}, i, at::kLong));
  save_tensors(dir / "many.pt", many);
  save_tensors(dir / "none.pt", StateDict());
  ASSERT_TRUE(run_python(dir, R"(
import torch, zipfile
for name in ("types", "views", "many", "none"):
    assert zipfile.ZipFile(name + ".pt").testzip() is None
    for mmap in (False, True):
        globals()[name] = torch.load(name + ".pt", weights_only=True, mmap=mmap)
assert len(types) == 60 and len(none) == 0 and type(none).__name__ == "OrderedDict"
for name, tensor in types.items():
    if name.endswith(".scalar"):
        assert tensor.shape == () and tensor.to(torch.complex64) == 1, name
    elif name.endswith(".empty"):
        assert tensor.shape == (0, 2), name
    else:
        expected = torch.arange(6.).view(2, 3)
        expected = expected % 2 if tensor.dtype == torch.bool else expected
        assert torch.equal(tensor.to(torch.complex64), expected.to(torch.complex64)), name
assert types["UInt64"].dtype == torch.uint64 and types["Float8_e5m2"].dtype == torch.float8_e5m2
base = torch.arange(24.).view(4, 6)
assert torch.equal(views["base"], base) and torch.equal(views["transposed"], base.t())
assert views["tied"].data_ptr() == views["base"].data_ptr() == views["transposed"].data_ptr()
assert torch.equal(views["part"], base[:, 1:6:2]) and views["part"].stride() == (6, 2)
assert torch.equal(views["expanded"], torch.full((4, 3), 3.))
assert torch.equal(views["alone"], torch.arange(40, 60, 3))
assert torch.equal(views["conj"], torch.complex(base, -base - 100))
assert torch.equal(views["neg"], -base - 100) and not views["neg"].is_neg()
assert views["größe \"'"].tolist() == [1] and not views["größe \"'"].requires_grad
assert all(torch.equal(tensor, torch.full((i,), i)) for i, tensor in enumerate(many.values()))
with zipfile.ZipFile("views.pt") as archive:
    for entry in archive.infolist():
        archive.fp.seek(entry.header_offset + 26)
        lengths = archive.fp.read(4)
        begin = entry.header_offset + 30 + int.from_bytes(lengths[:2], "little") + int.from_bytes(lengths[2:], "little")
        assert begin % 64 == 0, entry.filename
)"));
}

TEST(Save, PythonReadsSafetensors) {
  ASSERT_TRUE(python_has("torch, safetensors.torch")) << POSENC_PYTHON;
  const TempDir dir;
  torch::nn::Linear module(3, 2);
  save_weights(*module, dir / "x.safetensors", SaveOptions().metadata({{"made", "here"}}));
  save_weights(*module, dir / "x.pt");
  ASSERT_TRUE(run_python(dir, R"(
import safetensors, safetensors.torch, torch
ours = safetensors.torch.load_file("x.safetensors")
with safetensors.safe_open("x.safetensors", "pt") as file:
    assert file.metadata() == {"made": "here"}
other = torch.load("x.pt", weights_only=True)
assert list(other) == ["weight", "bias"] and all(torch.equal(ours[name], other[name]) for name in other)
torch.nn.Linear(3, 2).load_state_dict(other)
)"));
}

TEST(Save, RefusesWhatNoFileHoldsAndLeavesNothing) {
  const TempDir dir;
  const auto refused = [&](const std::string& path, const at::Tensor& tensor) {
    StateDict tensors;
    tensors.insert("a", tensor);
    const auto error = error_of([&] { save_tensors(path, tensors); });
    EXPECT_EQ(error.tensor(), "a");
    EXPECT_EQ(error.file(), path);
    EXPECT_EQ(error.function(), "save_tensors");
    return error.code();
  };
  for (const auto& path : {dir / "x.pt", dir / "x.safetensors"}) {
    EXPECT_EQ(refused(path, at::Tensor()), Code::Unsupported);
    EXPECT_EQ(refused(path, at::ones({2}).to_sparse()), Code::Unsupported);
    EXPECT_EQ(refused(path, at::ones({2}, at::device(at::kMeta))), Code::Unsupported);
    EXPECT_EQ(refused(path, at::quantize_per_tensor(at::ones({2}), 1.0, 0, at::kQInt8)),
              Code::Unsupported);
  }
  EXPECT_EQ(refused(dir / "x.safetensors", at::ones({2}, at::kComplexDouble)), Code::Unsupported);
  EXPECT_EQ(dir.entries(), 0u);
  EXPECT_EQ(error_of([&] { save_tensors(dir / "none/x.pt", StateDict()); }).code(), Code::NotFound);
}

// More entries than the regular directory can count.
TEST(Save, TorchSaveWithZip64) {
  const TempDir dir;
  StateDict tensors;
  for (int i = 0; i < 66000; ++i) tensors.insert(std::to_string(i), at::full({1}, i, at::kInt));
  save_tensors(dir / "x.pt", tensors);
  const auto loaded = load_tensors(dir / "x.pt");
  EXPECT_EQ(loaded.size(), 66000u);
  EXPECT_EQ(loaded["65999"].item<int>(), 65999);
}

TEST(SaveTensors, ANameThatIsNotUtf8IsRefusedInEveryFormat) {
  const TempDir dir;
  StateDict tensors;
  tensors.insert("a\xff", at::ones({2}));
  for (const char* name : {"x.pt", "x.safetensors"}) {
    const auto error = error_of([&] { save_tensors(dir / name, tensors); });
    EXPECT_EQ(error.code(), WeightsErrorCode::Unsupported);
    EXPECT_CONTAINS(error.what(), "in UTF-8");
    EXPECT_FALSE(std::filesystem::exists(dir / name));
  }
}

}  // namespace
}  // namespace posenc::testing::save_test
