#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "posenc/weights/manifest.h"
#include "support/python.h"
#include "weights/common/file.h"
#include "weights/convert.h"
#include "weights/files.h"
#include "weights/manifest/single_file.h"
#include "weights/torch/readers.h"

// Files that this machine's PyTorch has just written, compared tensor by tensor and byte by byte
// with what it reads itself.
namespace posenc::testing {
namespace {

Manifest read(const io::InputFile& file) {
  return io::looks_like_torch_legacy(file) ? io::read_torch_legacy(file) : io::read_archive(file);
}

bool is_complex(ManifestDtype dtype) {
  return dtype == ManifestDtype::Complex32 || dtype == ManifestDtype::Complex64 ||
         dtype == ManifestDtype::Complex128;
}

void flip_sign(std::string& bytes, std::size_t end) { bytes[end - 1] ^= '\x80'; }

// The contiguous bytes of a tensor, with conj and neg resolved.
std::string contiguous_bytes(const io::InputFile& file, const Manifest& manifest,
                             const ManifestTensor& tensor) {
  const auto& storage = manifest.storages[tensor.storage];
  const auto item = static_cast<std::size_t>(item_size(tensor.dtype));
  int64_t count = 1;
  for (const int64_t size : tensor.sizes) count *= size;
  std::string out;
  std::vector<int64_t> index(tensor.sizes.size(), 0);
  for (int64_t i = 0; i < count; ++i) {
    int64_t at = tensor.offset;
    for (std::size_t d = 0; d < index.size(); ++d) at += index[d] * tensor.strides[d];
    std::string bytes = file.read(storage.offset + static_cast<uint64_t>(at) * item, item);
    if (tensor.conj) flip_sign(bytes, item);
    if (tensor.negative) flip_sign(bytes, item);
    if (tensor.negative && is_complex(tensor.dtype)) flip_sign(bytes, item / 2);
    out += bytes;
    for (std::size_t d = index.size(); d-- > 0 && ++index[d] == tensor.sizes[d];) index[d] = 0;
  }
  return out;
}

// The text that make_files.py expects: `name dtype sizes bytes` for each tensor and `opaque name`
// for each opaque object, sorted.
std::string manifest_text(const io::InputFile& file, const Manifest& manifest) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::vector<std::string> lines;
  for (const auto& tensor : manifest.tensors) {
    std::string line = tensor.name + " " + dtype_name(tensor.dtype) + " ";
    for (std::size_t d = 0; d < tensor.sizes.size(); ++d) {
      line += (d > 0 ? "," : "") + std::to_string(tensor.sizes[d]);
    }
    line += tensor.sizes.empty() ? "- " : " ";
    const std::string bytes = contiguous_bytes(file, manifest, tensor);
    for (const char c : bytes) {
      line += kDigits[static_cast<unsigned char>(c) >> 4];
      line += kDigits[c & 0xf];
    }
    lines.push_back(line + (bytes.empty() ? "-\n" : "\n"));
  }
  for (const auto& entry : manifest.opaque) lines.push_back("opaque " + entry.name + "\n");
  std::sort(lines.begin(), lines.end());
  std::string text;
  for (const auto& line : lines) text += line;
  return text;
}

class TorchFiles : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    dir_ = new TempDir;
    made_ = new ::testing::AssertionResult(
        run_python(*dir_, "import sys; sys.path.insert(0, '" POSENC_TESTS_DIR "/weights')\n" +
                              read_bytes(POSENC_TESTS_DIR "/weights/torch/make_files.py")));
  }
  static void TearDownTestSuite() {
    delete made_;
    delete dir_;
  }
  void SetUp() override { ASSERT_TRUE(*made_); }

  static std::string refused(const std::string& file) {
    return refusal([&] { read(io::InputFile(*dir_ / file)); });
  }
  static Manifest manifest(const std::string& file) { return read(io::InputFile(*dir_ / file)); }

  static TempDir* dir_;
  static ::testing::AssertionResult* made_;
};
TempDir* TorchFiles::dir_ = nullptr;
::testing::AssertionResult* TorchFiles::made_ = nullptr;

TEST_F(TorchFiles, AreWhatPythonReads) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(dir_->path())) {
    if (entry.path().extension() != ".expected") continue;
    const std::string path = entry.path().parent_path() / entry.path().stem();
    SCOPED_TRACE(entry.path().stem());
    const io::InputFile file(path);
    try {
      EXPECT_EQ(manifest_text(file, read(file)), read_bytes(entry.path()));
    } catch (const WeightsError& error) {
      ADD_FAILURE() << error.what();
    }
    ++files;
  }
  EXPECT_GE(files, 43);
}

TEST_F(TorchFiles, TellTheirFormat) {
  EXPECT_EQ(manifest("protocol2.pt").format, WeightsFormat::TorchSave);
  EXPECT_EQ(manifest("legacy2.pt").format, WeightsFormat::TorchSaveLegacy);
  EXPECT_EQ(manifest("script.pt").format, WeightsFormat::TorchScript);
  EXPECT_EQ(manifest("mobile.ptl").format, WeightsFormat::TorchScript);
  EXPECT_EQ(manifest("export.pt2").format, WeightsFormat::Pt2);
  EXPECT_EQ(manifest("export_inner.pt2").format, WeightsFormat::Pt2);
  EXPECT_EQ(manifest("script.pt").class_name, "Net");
  EXPECT_EQ(manifest("with.dots.in.name").files,
            std::vector<std::string>{*dir_ / "with.dots.in.name"});
}

TEST_F(TorchFiles, ShareTiedStorage) {
  for (const char* file : {"views.pt", "legacy_views.pt"}) {
    std::map<std::string, std::size_t> storage;
    for (const auto& tensor : manifest(file).tensors) storage[tensor.name] = tensor.storage;
    EXPECT_EQ(storage["whole"], storage["tied"]);
    EXPECT_EQ(storage["whole"], storage["strided"]);
    EXPECT_EQ(storage["conj"], storage["both"]);
    EXPECT_NE(storage["whole"], storage["neg"]);
  }
}

TEST_F(TorchFiles, TellParametersFromBuffers) {
  for (const char* file : {"script.pt", "mobile.ptl", "trace.pt", "export.pt2"}) {
    SCOPED_TRACE(file);
    std::map<std::string, ManifestTensor> tensors;
    for (const auto& tensor : manifest(file).tensors) tensors[tensor.name] = tensor;
    const bool exported = std::string(file) == "export.pt2";
    const auto& parameter = tensors[exported ? "a" : "first.weight"];
    const auto& buffer = tensors[exported ? "d" : "first.scale"];
    EXPECT_EQ(parameter.role, TensorRole::Parameter);
    EXPECT_TRUE(parameter.requires_grad);
    EXPECT_EQ(buffer.role, TensorRole::Buffer);
    EXPECT_FALSE(buffer.requires_grad);
  }
  std::map<std::string, ManifestTensor> tensors;
  for (const auto& tensor : manifest("protocol2.pt").tensors) tensors[tensor.name] = tensor;
  EXPECT_EQ(tensors["model.a.weight"].role, TensorRole::Parameter);
  EXPECT_TRUE(tensors["model.a.weight"].requires_grad);
  EXPECT_FALSE(tensors["model.b"].requires_grad);
  EXPECT_EQ(tensors["model.c"].role, TensorRole::Parameter);
  EXPECT_EQ(tensors["list.0"].role, TensorRole::Unknown);
}

TEST_F(TorchFiles, ShowPlainValues) {
  for (const char* file : {"protocol2.pt", "protocol5.pt", "legacy2.pt"}) {
    SCOPED_TRACE(file);
    const Manifest read = manifest(file);
    std::map<std::string, std::string> values, opaque;
    for (const auto& entry : read.values) values[entry.name] = entry.text;
    for (const auto& entry : read.opaque) opaque[entry.name] = entry.text;
    EXPECT_EQ(values["epoch"], "3");
    EXPECT_EQ(values["big"], "1099511627776");
    EXPECT_EQ(values["bigger"], "0x008000000000000001");
    EXPECT_EQ(values["lr"], "1e-05");
    EXPECT_EQ(values["text"], "a\nb \u00e9");
    EXPECT_EQ(values["none"], "None");
    EXPECT_EQ(values["flag"], "True");
    EXPECT_EQ(values["size"], "(2, 3)");
    EXPECT_EQ(values["device"], "cpu");
    EXPECT_EQ(values["dtype"], "torch.float16");
    EXPECT_EQ(values["bytes"], "2 bytes");
    EXPECT_EQ(values["set"], "{1, 2}");
    EXPECT_EQ(values["counter.l"], "2");
    EXPECT_EQ(values["optimizer.param_groups.0.betas"], "(0.9, 0.999)");
    EXPECT_EQ(values["optimizer.param_groups.0.params"], "[0]");
    EXPECT_EQ(opaque["namespace"],
              "an object of class argparse.Namespace with tensors among its attributes");
    EXPECT_EQ(opaque["subclass"], "a tensor of class __main__.Marked");
    EXPECT_EQ(opaque["sparse"], "a sparse tensor (save it after to_dense())");
    EXPECT_EQ(opaque["csr"], "a sparse tensor (save it after to_dense())");
    EXPECT_EQ(opaque["quantised"], "a quantised tensor (save it after dequantize())");
  }
}

// A million steps would be a million lines.
TEST_F(TorchFiles, ListTheValuesOfTheFirstItemsOfALongList) {
  const Manifest read = manifest("history.pt");
  std::map<std::string, std::string> values;
  for (const auto& entry : read.values) values[entry.name] = entry.text;
  EXPECT_EQ(values["history.0.loss"], "0.0");
  EXPECT_EQ(values["history.99.loss"], "49.5");
  EXPECT_EQ(values.count("history.100.loss"), 0u);
  EXPECT_EQ(values["epoch"], "3");
  EXPECT_EQ(read.more_values, 50u);
  ASSERT_EQ(read.tensors.size(), 1u);
  EXPECT_EQ(read.tensors[0].name, "history.150.w");
}

TEST_F(TorchFiles, AreRefusedByName) {
  for (const char* file : {"whole.pt", "legacy_whole.pt"}) {
    EXPECT_CONTAINS(refused(file), "WholeModule: ");
    EXPECT_CONTAINS(refused(file), "'vision_models.ResNet'");
    EXPECT_CONTAINS(refused(file), "save model.state_dict() with torch.save");
  }
  EXPECT_CONTAINS(refused("frozen.pt"), "Unsupported: is frozen TorchScript");
  EXPECT_CONTAINS(refused("deflated.pt"), "Unsupported: is a compressed archive");
  EXPECT_CONTAINS(refused("big_endian.pt"), "Unsupported: was saved on a big-endian machine");
  EXPECT_CONTAINS(refused("legacy_big_endian.pt"), "Unsupported: was saved on a big-endian");
  EXPECT_CONTAINS(refused("compiled.pt2"), "Unsupported: is a program compiled by AOTInductor");
  EXPECT_CONTAINS(refused("shards/__0_0.distcp"),
                  "Unsupported: is several zip archives one after the other, as a shard (.distcp)");
  EXPECT_CONTAINS(refusal([] { io::read_single_file(io::InputFile(*dir_ / "shards/.metadata")); }),
                  "Unsupported: is the list of shards of PyTorch's distributed checkpoint");
}

// The opaque entry with that name; the rest of the file is readable.
ManifestEntry opaque_in(const Manifest& manifest, const std::string& name) {
  for (const auto& entry : manifest.opaque) {
    if (entry.name == name) return entry;
  }
  ADD_FAILURE() << "no opaque " << name;
  return {};
}

TEST_F(TorchFiles, AnUnreadableTensorDoesNotAffectTheOthers) {
  const Manifest packed = manifest("bits.pt");
  ASSERT_EQ(packed.tensors.size(), 1u);
  EXPECT_EQ(packed.tensors[0].name, "b");
  EXPECT_EQ(opaque_in(packed, "w").kind, EntryKind::Unreadable);
  EXPECT_EQ(opaque_in(packed, "w").text,
            "a tensor that has a dtype that cannot be read: 'torch.bits1x8' (convert it "
            "to another one in Python)");

  const Manifest clash = manifest("clash.pt");
  ASSERT_EQ(clash.tensors.size(), 1u) << "neither of the two that are called a.b";
  EXPECT_EQ(clash.tensors[0].name, "c");
  ASSERT_EQ(clash.opaque.size(), 1u);
  EXPECT_EQ(opaque_in(clash, "a.b").kind, EntryKind::Unreadable);
  EXPECT_EQ(opaque_in(clash, "a.b").text, "one of several tensors of this name, joined by dots");
}

// Entries that `posenc convert` could not reproduce.
TEST_F(TorchFiles, AreConvertedWithAllTheirTensorsOrNotAtAll) {
  const auto refused_to_convert = [](const std::string& file) {
    return refusal([&] { io::check_convertible(manifest(file)); });
  };
  EXPECT_CONTAINS(refused_to_convert("bits.pt"),
                  "Unsupported: tensor 'w' cannot be read: it is a tensor that has a dtype");
  EXPECT_CONTAINS(refused_to_convert("clash.pt"), "Unsupported: tensor 'a.b' cannot be read");
  EXPECT_CONTAINS(refused_to_convert("module.pt"),
                  "WholeModule: holds no tensors but 'model', a whole module of class");
  EXPECT_CONTAINS(refused_to_convert("module.pt"), "save model.state_dict() in place of the model");
  EXPECT_CONTAINS(refused_to_convert("namedtuple.pt"),
                  "WholeModule: holds 'pair', a container of class __main__.Pair with tensors "
                  "inside, which only its Python code can load");
  EXPECT_CONTAINS(refused_to_convert("namespace.pt"),
                  "WholeModule: holds no tensors but 'args', an object of class "
                  "argparse.Namespace with tensors among its attributes");
  EXPECT_CONTAINS(refused_to_convert("empty.pt"), "Unsupported: holds no tensors");
  EXPECT_CONTAINS(refused_to_convert("protocol2.pt"),
                  "Unsupported: tensor 'subclass' cannot be read: it is a tensor of class");
}

// What is in such a container is not known, since its class decides that.
TEST_F(TorchFiles, ANamedtupleOfTensorsIsNamed) {
  const Manifest read = manifest("namedtuple.pt");
  ASSERT_EQ(read.tensors.size(), 1u);
  EXPECT_EQ(read.tensors[0].name, "b");
  EXPECT_EQ(opaque_in(read, "pair").text, "a container of class __main__.Pair with tensors inside");
}

TEST_F(TorchFiles, NameAWholeModuleAmongOtherThings) {
  for (const char* file : {"module.pt", "legacy_module.pt"}) {
    const Manifest read = manifest(file);
    EXPECT_TRUE(read.tensors.empty());
    EXPECT_EQ(opaque_in(read, "model").kind, EntryKind::Module);
    EXPECT_EQ(opaque_in(read, "model").text,
              "a whole module of class torch.nn.modules.container.Sequential");
    EXPECT_EQ(opaque_in(manifest("protocol2.pt"), "namespace").kind, EntryKind::Object);
  }
}

}  // namespace
}  // namespace posenc::testing
