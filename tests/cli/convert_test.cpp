#include <torch/types.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/program.h"
#include "posenc/weights/manifest.h"

namespace posenc::testing::convert_test {
namespace {

using Json = nlohmann::json;

class Convert : public InFolder {};

std::string real(const std::string& name) { return std::string(POSENC_REAL_FILES) + "/" + name; }

// The tensors' names, dtypes, shapes and hashes, sorted.
std::vector<Json> tensors_of(const std::string& path) {
  const auto result = posenc({"inspect", "--json", path});
  EXPECT_EQ(result.status, 0) << result.err;
  auto tensors = Json::parse(result.out).at("tensors").get<std::vector<Json>>();
  std::sort(tensors.begin(), tensors.end());
  return tensors;
}

std::string content(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

TEST_F(Convert, KeepsEveryTensor) {
  for (const std::string name :
       {"dtypes.safetensors", "model.safetensors.index.json", "pytorch_model.bin.index.json",
        "strided.pt", "state_dict.pt", "training.pt", "legacy_strided.pt", "script.pt", "trace.pt",
        "export.pt2"}) {
    SCOPED_TRACE(name);
    const auto result = posenc({"convert", real(name), file("out")});
    ASSERT_EQ(result.status, 0) << result.err;
    EXPECT_EQ(tensors_of(file("out")), tensors_of(real(name)));
  }
}

TEST_F(Convert, PythonReadsTheResult) {
  ASSERT_EQ(posenc({"convert", real("strided.pt"), file("out")}).status, 0);
  const std::string script =
      "import sys, torch; from safetensors import safe_open\n"
      "old = torch.load(sys.argv[1])\n"
      "with safe_open(sys.argv[2], 'pt') as new:\n"
      "    assert set(new.keys()) == set(old) and new.metadata() == {'format': 'pt'}\n"
      "    assert all(torch.equal(new.get_tensor(name), old[name]) for name in old)\n";
  const auto result = run_program({POSENC_PYTHON, "-c", script, real("strided.pt"), file("out")});
  EXPECT_EQ(result.status, 0) << result.err;
}

// A file named .pt is torch.save's, as save_weights() writes it.
TEST_F(Convert, GoesByTheExtensionAsSaveWeightsDoes) {
  const std::string file_of_tensors = real("strided.pt");
  for (const std::string name : {"y.pt", "y.pth", "y.bin", "y"}) {
    const auto result = posenc({"convert", file_of_tensors, file(name)});
    ASSERT_EQ(result.status, 0) << result.err;
    EXPECT_EQ(tensors_of(file(name)), tensors_of(file_of_tensors));
    const bool is_torch = name.size() > 2 && name[2] == 'p';
    EXPECT_EQ(read_manifest(file(name)).format == WeightsFormat::Safetensors, !is_torch) << name;
  }
}

TEST_F(Convert, SaysWhatItLeavesOut) {
  const auto result = posenc({"convert", real("training.pt"), file("out")});
  EXPECT_EQ(result.status, 0);
  EXPECT_PRED_FORMAT2(::testing::IsSubstring, "values that are not tensors", result.err);
  EXPECT_PRED_FORMAT2(::testing::IsSubstring, "10 tensors", result.out);
}

TEST_F(Convert, WeightsOfSubclassesAreConvertedOrTheFileIsRefused) {
  const auto result = run_program(
      {POSENC_PYTHON, "-c",
       "import collections, sys, torch\n"
       "class StateDict(collections.OrderedDict): pass\n"
       "Pair = collections.namedtuple('Pair', 'weight bias')\n"
       "state = StateDict(weight=torch.ones(2, 3), bias=torch.ones(2))\n"
       "torch.save({'model': state, 'steps': torch.ones(1)}, sys.argv[1])\n"
       "torch.save({'model': Pair(*state.values()), 'steps': torch.ones(1)}, sys.argv[2])\n",
       file("dict"), file("tuple")});
  ASSERT_EQ(result.status, 0) << result.err;
  ASSERT_EQ(posenc({"convert", file("dict"), file("out")}).status, 0);
  std::vector<std::string> found;
  for (const auto& tensor : tensors_of(file("out"))) found.push_back(tensor.at("name"));
  std::sort(found.begin(), found.end());
  EXPECT_EQ(found, (std::vector<std::string>{"model.bias", "model.weight", "steps"}));
  expect_refused(posenc({"convert", file("tuple"), file("out")}), "convert",
                 "'model', a container of class __main__.Pair with tensors inside");
}

TEST_F(Convert, AFileWithoutTensorsIsRefused) {
  const auto old = text_file("out", "precious");
  const auto script = [&](const std::string& value) {
    const auto result =
        run_program({POSENC_PYTHON, "-c",
                     "import sys, torch; torch.save(" + value + ", sys.argv[1])", file("x")});
    EXPECT_EQ(result.status, 0) << result.err;
    return posenc({"convert", file("x"), old});
  };
  expect_refused(script("{'model': torch.nn.Linear(2, 2)}"), "convert",
                 "'model', a whole module of class torch.nn.modules.linear.Linear");
  expect_refused(script("{'epoch': 3}"), "convert", "holds no tensors");
  EXPECT_EQ(content(old), "precious");
}

TEST_F(Convert, ARefusalLeavesTheOldFile) {
  const auto old = text_file("out", "precious");
  expect_refused(posenc({"convert", text_file("x", "GGUF...."), old}), "convert", "GGUF");
  expect_refused(posenc({"convert", real("dtypes_2.pt"), old}), "convert",
                 "which safetensors lacks");
  EXPECT_EQ(content(old), "precious");
  expect_refused(posenc({"convert", real("strided.pt"), file("none/out")}), "convert",
                 "No such file");
  expect_refused(posenc({"convert", real("strided.pt"), folder_.path().string()}), "convert",
                 "not a regular file");
  EXPECT_EQ(posenc({"convert", real("strided.pt")}).status, 2);
  EXPECT_EQ(names(), (std::vector<std::string>{"out", "x"}));
}

TEST_F(Convert, AFullDiskLeavesTheOldFile) {
  const auto old = text_file("out", "precious");
  const auto result = run_program({"/bin/sh", "-c",
                                   "ulimit -f 1; trap '' XFSZ; exec " + std::string(POSENC_CLI) +
                                       " convert " + real("dtypes.safetensors") + " " + old});
  EXPECT_EQ(result.status, 1) << result.err;
  EXPECT_EQ(content(old), "precious");
  EXPECT_EQ(names(), std::vector<std::string>{"out"});
}

}  // namespace
}  // namespace posenc::testing::convert_test
