#include <torch/types.h>

#include <fmt/format.h>

#include <fstream>
#include <sstream>

#include "cli/program.h"
#include "posenc/version.h"
#include "posenc/weights/safetensors.h"
#include "weights/files.h"

namespace posenc::testing {
namespace {

class Usage : public InFolder {};
class BadFile : public InFolder {};

TEST_F(Usage, HelpShowsAnExample) {
  for (const std::string sub : {"table", "presets", "identify", "inspect", "convert", "tokenize",
                                "detokenize", "classify", "fill", "translate", "version", "help"}) {
    const auto result = posenc({sub, "--help"});
    EXPECT_EQ(result.status, 0) << sub;
    EXPECT_EQ(result.err, "") << sub;
    EXPECT_PRED_FORMAT2(::testing::IsSubstring, "Example:\n  posenc " + sub, result.out);
  }
  EXPECT_EQ(posenc({"--help"}).status, 0);
}

TEST_F(Usage, NoLineOfAHelpIsTooWide) {
  for (const std::string sub : {"", "table", "rotary", "presets", "identify", "inspect", "convert",
                                "encode", "translate", "version", "help"}) {
    const auto result = sub.empty() ? posenc({"--help"}) : posenc({sub, "--help"});
    std::istringstream lines(result.out);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100u) << line;
  }
}

TEST_F(Usage, WrongUseIsStatusTwo) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{}, "posenc: "},
      {{"inspct", "a.pt"}, "did you mean inspect?"},
      {{"inspect"}, "posenc inspect: "},
      {{"inspect", "a.pt", "--jsn"}, "posenc inspect: "},
      {{"rotary", "--param", "factor"}, "must have the form key=value"},
      {{"rotary", "--param", "=3"}, "must have the form key=value"},
      {{"table", "--preset", "notebook_001", "--dim", "x", "--length", "3", "--out", file("o")},
       "--dim"},
      {{"table"}, "--out"},
      {{"table", "--out", file("o"), "--length", "1.5"}, "--length"},
      {{"plot", "--out", file("o")}, "there is no subcommand plot"},
      {{"table", "--preset", "wisper", "--dim", "4", "--length", "3", "--out", file("o")},
       "--preset must be a preset, as `posenc presets` lists them. Got wisper; did you mean "
       "whisper?"},
      {{"rotary", "--preset", "lama", "--in", file("i"), "--out", file("o")},
       "--preset must be a rotary embedding, as `posenc presets --rotary` lists them. Got lama; "
       "did you mean llama?"},
  };
  for (const auto& [command, message] : cases) {
    const auto result = posenc(command);
    EXPECT_EQ(result.status, 2) << result.err;
    EXPECT_EQ(result.out, "");
    EXPECT_PRED_FORMAT2(::testing::IsSubstring, message, result.err);
  }
  EXPECT_TRUE(names().empty());
}

// Messages for wrong command lines, complete and meant for users.
TEST_F(Usage, MessagesSayWhatIsMeant) {
  const std::string out = file("o");
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{}, "posenc: A subcommand is required"},
      {{"--vresion"}, "posenc: there is no option --vresion; did you mean --version?"},
      {{"frobnicate"}, "posenc: there is no subcommand frobnicate; known: "},
      {{"verify", "a.pt"}, "posenc: there is no subcommand verify; docs/parity.md says how to"},
      {{"help", "run"}, "posenc help: there is no subcommand run; docs/parity.md says how to"},
      {{"help", "tabel"}, "posenc help: there is no subcommand tabel; did you mean table?"},
      {{"table", "--precison", "exact"},
       "posenc table: there is no option --precison; did you mean --precision?"},
      {{"table", "--lenght=5"},
       "posenc table: there is no option --lenght; did you mean --length?"},
      {{"table", "--frobnicate"}, "posenc table: there is no option --frobnicate\n"},
      {{"presets", "more"}, "posenc presets: unexpected argument more\n"},
      {{"table", "--precision", "extact"},
       "--precision must be reference or exact. Got extact; did you mean exact?\n"},
      {{"table", "--dim", "abc"}, "--dim must be an integer from 1 to 1048576. Got abc\n"},
      {{"table", "--dim", ""}, "--dim must be an integer from 1 to 1048576. Got an empty string\n"},
      {{"table", "--dim", "0x10"}, "--dim must be an integer from 1 to 1048576. Got 0x10\n"},
      {{"table", "--dim", "9223372036854775808"}, "Got 9223372036854775808\n"},
      {{"table", "--dim"}, "--dim must be followed by its value\n"},
      {{"table", "--dim", "4", "--dim", "6"}, "--dim may be given only once\n"},
      {{"table", "--length", "-5"}, "--length must be an integer from 1 to 2147483648. Got -5\n"},
      {{"table", "--cases", "c", "--dim", "4", "--out", out},
       "--cases and --dim exclude each other\n"},
      {{"table", "--out", "-"}, "--out must name a file, since files are replaced atomically"},
      {{"convert", "a", "-"}, "OUT must name a file"},
      {{"table", "--out", ""}, "--out must name a file. Got an empty string\n"},
      {{"translate", "--beams", "0"}, "--beams must be an integer from 1 to 10000. Got 0\n"},
      {{"translate", "--beams", "1e3"}, "from 1 to 10000. Got 1e3\n"},
      {{"translate", "--n-best", "10001"}, "--n-best must be an integer from 1 to 10000. Got"},
      {{"encode", "--threads", "0"}, "--threads must be an integer of at least 1. Got 0"},
      {{"classify", "--threads", "x"}, "--threads must be an integer of at least 1. Got x"},
      {{"fill", "--threads", "0"}, "--threads must be an integer of at least 1. Got 0"},
      {{"generate", "--threads", "0"}, "--threads must be an integer of at least 1. Got 0"},
      {{"translate", "--threads", "-1"}, "--threads must be an integer of at least 1. Got -1"},
      {{"translate", "--batch", "0"}, "--batch must be an integer of at least 1. Got 0\n"},
      {{"translate", "--max-length", "1.5"}, "--max-length must be an integer of at least 1."},
      {{"presets", "--json=maybe"}, "posenc presets: --json takes no value\n"},
      {{"--json", "presets"}, "posenc presets: --json must come after presets and before any --\n"},
      {{"presets", "--", "--json"}, "--json must come after presets and before any --\n"},
      {{"convert", "", out}, "IN must be the name of a file. Got an empty string\n"},
      {{"inspect", ""}, "FILE must be the name of a file. Got an empty string\n"},
      {{"table", "--cases", "", "--out", out}, "--cases must be the name of a file. Got an empty"},
      {{"table", "--positions", ""},
       "--positions must be the name of a file. Got an empty string\n"},
      {{"translate", "m", ""}, "FILE must be the name of a file. Got an empty string\n"},
  };
  for (const auto& [command, message] : cases) {
    const auto result = posenc(command);
    EXPECT_EQ(result.status, 2) << message << result.err;
    EXPECT_EQ(result.out, "");
    EXPECT_PRED_FORMAT2(::testing::IsSubstring, message, result.err);
    EXPECT_PRED_FORMAT2(::testing::IsSubstring, "\nTry: posenc", result.err);
  }
  EXPECT_TRUE(names().empty());
}

// A script with an empty variable writes `--out=`; the next argument must not become the value.
TEST_F(Usage, AnOptionWithAnEmptyValueTakesNoOther) {
  const auto input = safetensors("in", dict({{"a", torch::zeros({1})}}));
  EXPECT_CONTAINS(posenc({"table", "--preset", "xlm", "--dim=", "--length=3"}).err,
                  "--dim must be an integer from 1 to 1048576. Got an empty string\n");
  const auto result = posenc({"encode", "--in=", input, "--out", file("out")});
  EXPECT_EQ(result.status, 2);
  EXPECT_CONTAINS(result.err, "--in must be the name of a file. Got an empty string\n");
  EXPECT_EQ(names(), std::vector<std::string>{"in"});
  EXPECT_EQ(posenc({"inspect", "--", "--json="}).status, 1) << "the name of a file";
}

TEST_F(Usage, TheVersionIsTheHeaders) {
  const auto result = posenc({"--version"});
  EXPECT_EQ(result.status, 0) << result.err;
  const std::string expected = std::string("posenc ") + POSENC_VERSION + ", built with LibTorch 2.";
  EXPECT_EQ(result.out.rfind(expected, 0), 0u) << result.out;
  EXPECT_EQ(posenc({"version"}).out,
            result.out +
                "components: base, kernels, core, positions, weights, transformer, inference, "
                "models, train, tokenizers, text, speech, catalogue\n");
  EXPECT_EQ(posenc({"-V"}).out, result.out);
  EXPECT_STREQ(version(), POSENC_VERSION);
  EXPECT_EQ(
      fmt::format("{}.{}.{}", POSENC_VERSION_MAJOR, POSENC_VERSION_MINOR, POSENC_VERSION_PATCH),
      POSENC_VERSION);
}

TEST_F(Usage, HelpIsASubcommandToo) {
  EXPECT_EQ(posenc({"help"}).out, posenc({"--help"}).out);
  EXPECT_EQ(posenc({"help"}).status, 0);
  EXPECT_EQ(posenc({"help", "table"}).out, posenc({"table", "--help"}).out);
}

// An opened file gets the lowest free descriptor: without standard output, that of standard output.
TEST_F(Usage, WithoutStandardDescriptorsNothingIsMixedUp) {
  const auto in = safetensors("in", dict({{"a", torch::arange(40000)}}));
  for (const std::string closed : {"0<&-", "1>&-", "2>&-", "0<&- 1>&- 2>&-"}) {
    SCOPED_TRACE(closed);
    const auto result = run_program(
        {"/bin/sh", "-c",
         std::string(POSENC_CLI) + " convert " + in + " " + file("out") + " " + closed});
    EXPECT_EQ(result.status, closed.find("1>") == std::string::npos ? 0 : 1) << result.err;
    EXPECT_EQ(load_safetensors(file("out")).tensors.size(), 1u);
  }
}

// If the message cannot be printed, the exit status still reports the error.
TEST_F(Usage, ErrorsSurviveAClosedOrFullStandardError) {
  for (const std::string where : {"2>&-", "2>/dev/full"}) {
    const std::string program = POSENC_CLI;
    EXPECT_EQ(run_program({"/bin/sh", "-c", program + " nosuch " + where}).status, 2);
    EXPECT_EQ(run_program({"/bin/sh", "-c", program + " inspect nosuch " + where}).status, 1);
  }
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
    expect_refused(posenc({"identify", path}), "identify", message);
    expect_refused(posenc({"table", "--preset", "notebook_001", "--dim", "4", "--positions", path,
                           "--out", file("o")}),
                   "table", path);
  }
  EXPECT_EQ(names(), before);
}

TEST_F(BadFile, AnOldOutputSurvivesARefusal) {
  const auto old = text_file("out", "precious");
  expect_refused(
      posenc({"table", "--preset", "detr_2d", "--dim", "6", "--length", "7", "--out", old}),
      "table", "needs the parameter `height`");
  std::ifstream stream(old);
  std::string content;
  stream >> content;
  EXPECT_EQ(content, "precious");
}

}  // namespace
}  // namespace posenc::testing
