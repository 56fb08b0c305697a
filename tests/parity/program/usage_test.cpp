#include <torch/types.h>

#include <fstream>
#include <sstream>

#include "parity/program/runs.h"
#include "weights/files.h"

namespace posenc::testing {
namespace {

class ParityUsage : public InFolder {};

TEST_F(ParityUsage, HelpShowsAnExample) {
  for (const std::string sub : {"verify", "run"}) {
    const auto result = posenc_parity({sub, "--help"});
    EXPECT_EQ(result.status, 0) << sub;
    EXPECT_EQ(result.err, "") << sub;
    EXPECT_CONTAINS(result.out, "Example:\n  posenc-parity " + sub);
    std::istringstream lines(result.out);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100u) << line;
  }
  EXPECT_EQ(posenc_parity({"--help"}).status, 0);
  EXPECT_CONTAINS(posenc_parity({"verify", "--help"}).out, "only with trusted files");
}

TEST_F(ParityUsage, WrongUseIsStatusTwo) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{}, "posenc-parity: A subcommand is required"},
      {{"verfy", "a.pt"}, "did you mean verify?"},
      {{"verify"}, "posenc-parity verify: "},
      {{"verify", "a.pt", "--modul", "X"}, "posenc-parity verify: "},
      {{"verify", "a.pt", "--param", "scale"}, "must have the form key=value"},
      {{"verify", "a.pt", "--param", "=3"}, "must have the form key=value"},
      {{"verify", "a.pt", ""}, "MODEL must be the name of a file. Got an empty string\n"},
      {{"verify", "a.pt", "--module", "TokenEmbeding"},
       "--module must be a class, as `posenc-parity verify --help` lists them. Got "
       "TokenEmbeding; did you mean TokenEmbedding?"},
      {{"run", "a.pt", "--out", file("o")}, "--input"},
      {{"run", "a.pt", "--input", "i"}, "--out"},
      {{"run", "m", "--input", "i", "--out", "-"}, "Got -; use ./- for a file of that name"},
      {{"run", "--input=", "i", "--out", file("o")},
       "--input must be the name of a file. Got an empty string\n"},
      {{"run", "a.pt", "--module", "Nothing", "--input", "i", "--out", file("o")},
       "--module must be a class, as `posenc-parity run --help` lists them. Got Nothing"},
  };
  for (const auto& [command, message] : cases) {
    const auto result = posenc_parity(command);
    EXPECT_EQ(result.status, 2) << result.err;
    EXPECT_EQ(result.out, "");
    EXPECT_CONTAINS(result.err, message);
    EXPECT_CONTAINS(result.err, "\nTry: posenc-parity");
  }
  EXPECT_TRUE(names().empty());
}

TEST_F(ParityUsage, ABadFileIsRefusedAndNothingWritten) {
  const std::string fixture =
      std::string(POSENC_FIXTURES_DIR) + "/torchscript/input_embedding__InputEmbedding.script";
  const auto script = read_bytes(fixture + ".pt");
  const std::vector<std::pair<std::string, std::string>> files = {
      {file("absent"), "No such file"},
      {text_file("foreign", "once upon a time there was a file"), "foreign: "},
      {text_file("short.pt", script.substr(0, script.size() / 2)), "short.pt: "},
      {text_file("tail.pt", script.substr(0, script.size() - 9)), "tail.pt: "},
  };
  const auto old = text_file("out", "precious");
  const auto run = [&](const std::string& weights, const std::string& input) {
    return posenc_parity({"run", weights, "--input", input, "--out", old});
  };
  for (const auto& [path, message] : files) {
    SCOPED_TRACE(path);
    expect_parity_refused(posenc_parity({"verify", path}), "verify", message);
    expect_parity_refused(run(path, fixture + ".io.safetensors"), "run", message);
    expect_parity_refused(run(fixture + ".pt", path), "run", path);
  }
  expect_parity_refused(posenc_parity({"verify", fixture + ".io.safetensors"}), "verify",
                        "only weights");
  const auto weights = safetensors("w", dict({{"pos_enc", torch::zeros({3, 4})}}));
  const auto ids = safetensors("ids", dict({{"input", torch::tensor({{-1}})}}));
  expect_parity_refused(run(weights, ids), "run", "Got -1");
  EXPECT_EQ(read_bytes(old), "precious");
  for (const auto& path : {weights, ids}) {
    const auto before = read_bytes(path);
    expect_parity_refused(posenc_parity({"run", weights, "--input", ids, "--out", path}), "run",
                          path + ": the output must not be a file that is read");
    EXPECT_EQ(read_bytes(path), before);
  }
}

}  // namespace
}  // namespace posenc::testing
