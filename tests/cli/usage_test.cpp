#include <torch/types.h>

#include <fstream>
#include <sstream>

#include "cli/program.h"
#include "posenc/io/safetensors.h"

namespace posenc::testing {
namespace {

class Usage : public InFolder {};
class BadFile : public InFolder {};

TEST_F(Usage, HelpShowsAnExample) {
  for (const std::string sub : {"verify", "run", "table", "presets", "plot", "inspect", "convert",
                                "pronounce", "train-pronounce", "translate"}) {
    const auto result = posenc({sub, "--help"});
    EXPECT_EQ(result.status, 0) << sub;
    EXPECT_EQ(result.err, "") << sub;
    EXPECT_PRED_FORMAT2(::testing::IsSubstring, "Example:\n  posenc " + sub, result.out);
  }
  EXPECT_EQ(posenc({"--help"}).status, 0);
  EXPECT_PRED_FORMAT2(::testing::IsSubstring, "trusted files only",
                      posenc({"verify", "--help"}).out);
}

TEST_F(Usage, WrongUseIsStatusTwo) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{}, "posenc: "},
      {{"verfy", "a.pt"}, "did you mean verify?"},
      {{"verify"}, "posenc verify: "},
      {{"verify", "a.pt", "--modul", "X"}, "posenc verify: "},
      {{"verify", "a.pt", "--param", "scale"}, "must have the form key=value"},
      {{"verify", "a.pt", "--param", "=3"}, "must have the form key=value"},
      {{"run", "a.pt", "--out", file("o")}, "--input"},
      {{"run", "a.pt", "--input", "i"}, "--out"},
      {{"table", "--preset", "notebook_001", "--dim", "x", "--length", "3", "--out", file("o")},
       "--dim"},
      {{"presets", "more"}, "posenc presets: "},
      {{"plot"}, "--out"},
      {{"plot", "--out", file("o"), "--length", "1.5"}, "--length"},
  };
  for (const auto& [command, message] : cases) {
    const auto result = posenc(command);
    EXPECT_EQ(result.status, 2) << result.err;
    EXPECT_EQ(result.out, "");
    EXPECT_PRED_FORMAT2(::testing::IsSubstring, message, result.err);
  }
  EXPECT_TRUE(names().empty());
}

TEST_F(Usage, AFullDiskIsNoticed) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full";
  const auto result =
      run_program({"/bin/sh", "-c", std::string(POSENC_CLI) + " presets >/dev/full"});
  EXPECT_EQ(result.status, 1);
  EXPECT_PRED_FORMAT2(::testing::IsSubstring, "could not be written", result.err);
}

TEST_F(BadFile, EachHasItsMessageInEachCommand) {
  const std::string fixture =
      std::string(POSENC_FIXTURES_DIR) + "/torchscript/input_embedding__InputEmbedding.script";
  const auto bytes = [](const std::string& path) {
    std::ifstream stream(path, std::ios::binary);
    std::ostringstream text;
    text << stream.rdbuf();
    return text.str();
  };
  const auto script = bytes(fixture + ".pt"), tensors = bytes(fixture + ".io.safetensors");
  ASSERT_GT(script.size(), 1000u);
  struct Case {
    std::string path, message;
  };
  const std::vector<Case> weights = {
      {file("absent"), "No such file"},
      {folder_.path().string(), "directory"},
      {text_file("empty", ""), "empty"},
      {text_file("foreign", "once upon a time there was a file"), "foreign: "},
      {text_file("short.pt", script.substr(0, script.size() / 2)), "short.pt: "},
      {text_file("tail.pt", script.substr(0, script.size() - 9)), "tail.pt: "},
      {text_file("short.st", tensors.substr(0, tensors.size() - 3)), "short.st: "},
      {text_file("numpy", "\x93NUMPY then more"), "NumPy"},
  };
  const auto before = names();
  for (const auto& [path, message] : weights) {
    SCOPED_TRACE(path);
    expect_refused(posenc({"verify", path}), "verify", message);
    expect_refused(
        posenc({"run", path, "--input", fixture + ".io.safetensors", "--out", file("o")}), "run",
        message);
    expect_refused(posenc({"run", fixture + ".pt", "--input", path, "--out", file("o")}), "run",
                   path);
    expect_refused(posenc({"table", "--preset", "notebook_001", "--dim", "4", "--positions", path,
                           "--out", file("o")}),
                   "table", path);
  }
  EXPECT_EQ(names(), before);
  expect_refused(posenc({"verify", fixture + ".io.safetensors"}), "verify", "weights only");
}

TEST_F(BadFile, AnOldOutputSurvivesARefusal) {
  const auto old = text_file("out", "precious");
  const auto input = safetensors("in", dict({{"input", torch::tensor({{-1}})}}));
  const auto weights = safetensors("w", dict({{"pos_enc", torch::zeros({3, 4})}}));
  expect_refused(posenc({"run", weights, "--input", input, "--out", old}), "run", "Got -1");
  std::ifstream stream(old);
  std::string content;
  stream >> content;
  EXPECT_EQ(content, "precious");
}

}  // namespace
}  // namespace posenc::testing
