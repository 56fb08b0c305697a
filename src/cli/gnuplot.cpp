#include "cli/gnuplot.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string_view>
#include <system_error>

#include "cli/error.h"
#include "platform/process.h"

namespace posenc::cli {
namespace {

// An unnamed file, removed when closed. Unlike a pipe, it cannot block either side.
using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

File nameless_file() {
  File file(std::tmpfile(), std::fclose);
  if (!file) fail("cannot create a temporary file: {}", std::strerror(errno));
  return file;
}

std::string content(std::FILE* file) {
  std::string text;
  char part[65536];
  std::rewind(file);
  while (const std::size_t count = std::fread(part, 1, sizeof part, file)) text.append(part, count);
  return text;
}

// Runs gnuplot with three files as its standard streams and returns the wait status. Ignores the
// user's ~/.gnuplot (-d) and GNUTERM: gnuplot does not start if it lacks the terminal named there.
int run_gnuplot(std::FILE* in, std::FILE* out, std::FILE* err) {
  try {
    return platform::run_program({"gnuplot", "-d", "-"}, in, out, err, "GNUTERM");
  } catch (const std::system_error& error) {
    if (error.code() == std::errc::no_such_file_or_directory)
      fail("gnuplot is not installed (Debian: apt-get install gnuplot-nox)");
    fail("cannot run gnuplot: {}", error.code().message());
  }
}

// Checks for the end of the format, because gnuplot does not report a full disk.
bool is_whole(std::string_view picture) {
  return picture.ends_with("IEND\xae\x42\x60\x82") || picture.ends_with("</svg>\n") ||
         picture.ends_with("</svg>\n\n");
}

}  // namespace

std::string gnuplot(const std::string& script) {
  const File in = nameless_file(), out = nameless_file(), err = nameless_file();
  if (std::fwrite(script.data(), 1, script.size(), in.get()) != script.size() ||
      std::fflush(in.get()) != 0) {
    fail("cannot pass the plot's data to gnuplot: {}", std::strerror(errno));
  }
  std::rewind(in.get());
  const int status = run_gnuplot(in.get(), out.get(), err.get());
  const std::string complaint = content(err.get());
  if (status != 0 || !complaint.empty()) fail("gnuplot failed: {}", complaint);
  std::string picture = content(out.get());
  if (picture.empty()) fail("gnuplot wrote nothing");
  if (!is_whole(picture)) fail("gnuplot could not write the complete plot to a temporary file");
  return picture;
}

}  // namespace posenc::cli
