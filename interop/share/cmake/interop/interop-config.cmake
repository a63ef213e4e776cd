# find_package(interop): modules that use torch's tensors, built by CMake as interop.build does it for setuptools.
#
#   interop::interop                  a target to link to: folders of headers, torch's libraries, C++20, OpenMP
#   interop_add_cython_module(...)    a module from .pyx and C++ files
#   interop_install_module(...)       installs one
#
# All of this uses the Python that find_package(Python) finds; Python_EXECUTABLE names another.
cmake_minimum_required(VERSION 3.20)  # for depfiles with makefiles

if(NOT TARGET Python::Module OR NOT Python_EXECUTABLE)
  find_package(Python REQUIRED COMPONENTS Interpreter Development.Module)
endif()

# CXX, because which flags there are is up to the compiler: its path, for a shell, and what it is to be called with, as
# in CXX="ccache g++". -P: this folder is no place to import from.
string(REPLACE "'" "'\\''" _interop_compiler "${CMAKE_CXX_COMPILER}")
execute_process(
  COMMAND "${CMAKE_COMMAND}" -E env "CXX='${_interop_compiler}' ${CMAKE_CXX_COMPILER_ARG1}" "${Python_EXECUTABLE}" -P -m
          interop config --json
  OUTPUT_VARIABLE _interop_json
  ERROR_VARIABLE _interop_error
  RESULT_VARIABLE _interop_result
  OUTPUT_STRIP_TRAILING_WHITESPACE
  ERROR_STRIP_TRAILING_WHITESPACE)
if(NOT _interop_result EQUAL 0)
  set(interop_FOUND FALSE)
  set(interop_NOT_FOUND_MESSAGE
      "${Python_EXECUTABLE} says: ${_interop_error}. Is torch-interop installed there? Name another Python with -DPython_EXECUTABLE=... ; if pip runs CMake, give it --no-build-isolation.")
  return()
endif()

foreach(_interop_key version torch abi pxd include bootstrap suffix)
  string(JSON interop_${_interop_key} GET "${_interop_json}" ${_interop_key})
endforeach()
# Sets `result` to the list that a JSON object has under a key.
function(_interop_list json key result)
  set(values)
  string(JSON length LENGTH "${json}" ${key})
  math(EXPR last "${length} - 1")
  if(length GREATER 0)
    foreach(index RANGE ${last})
      string(JSON value GET "${json}" ${key} ${index})
      list(APPEND values "${value}")
    endforeach()
  endif()
  set(${result} "${values}" PARENT_SCOPE)
endfunction()

foreach(_interop_key include_dirs cflags library_dirs libraries)
  _interop_list("${_interop_json}" ${_interop_key} interop_${_interop_key})
endforeach()

if(NOT TARGET interop::interop)
  add_library(interop::interop INTERFACE IMPORTED)
  target_include_directories(interop::interop INTERFACE ${interop_include_dirs})
  target_compile_features(interop::interop INTERFACE cxx_std_20)
  foreach(_interop_flag ${interop_cflags})
    if(NOT _interop_flag MATCHES "^-std=") # cxx_std_20 says it, and lets a target ask for more
      target_compile_options(interop::interop INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:${_interop_flag}>")
    endif()
  endforeach()
  foreach(_interop_library ${interop_libraries})
    # The cache would keep the libraries of the torch, and the Python, of an earlier run.
    unset(interop_${_interop_library}_LIBRARY CACHE)
    find_library(interop_${_interop_library}_LIBRARY ${_interop_library} PATHS ${interop_library_dirs} NO_DEFAULT_PATH REQUIRED)
    mark_as_advanced(interop_${_interop_library}_LIBRARY)
    target_link_libraries(interop::interop INTERFACE "${interop_${_interop_library}_LIBRARY}")
  endforeach()
  # So that a program that does not call Python is not bound to the library of torch that needs Python. Some compilers
  # link in this way anyhow.
  target_link_options(interop::interop INTERFACE "$<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:LINKER:--as-needed>")
endif()

# interop_add_cython_module(<target> <source>... [MODULE <dotted.name>] [STABLE <torch> [LIMITED_API <tag>]])
#
# A module of Python from a .pyx, from C++ sources, or both. <target> is also the module's name, unless MODULE gives
# another, as it must for a module in a package. As with interop.build.Extension it consists of two files: <target>, and
# <target>_bootstrap, which imports torch and compares versions before it loads the other.
#
# With STABLE, as in STABLE 2.11, it is one file, linked to no library of torch, which runs with that release of torch and
# later ones; with LIMITED_API, as in LIMITED_API cp312, also with that CPython and later ones.
function(interop_add_cython_module target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "MODULE;STABLE;LIMITED_API" "")
  if(arg_KEYWORDS_MISSING_VALUES)
    message(FATAL_ERROR "interop_add_cython_module(${target}): there is no value after ${arg_KEYWORDS_MISSING_VALUES}")
  endif()
  if(NOT arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "interop_add_cython_module(${target}): the sources are missing, such as ${target}.pyx")
  endif()
  if(NOT arg_MODULE)
    set(arg_MODULE "${target}")
  endif()
  if(NOT arg_MODULE MATCHES "^[A-Za-z_][A-Za-z0-9_]*(\\.[A-Za-z_][A-Za-z0-9_]*)*$")
    message(FATAL_ERROR "interop_add_cython_module(${target}): MODULE must be a module's dotted name, got ${arg_MODULE}")
  endif()
  string(REGEX REPLACE ".*\\." "" name "${arg_MODULE}")

  set(cython "${arg_UNPARSED_ARGUMENTS}")
  list(FILTER cython INCLUDE REGEX "\\.pyx$")
  list(LENGTH cython count)
  if(count GREATER 1)
    # Cython would write the module's PyInit_ function into each.
    message(FATAL_ERROR "interop_add_cython_module(${target}): a module has one .pyx, got ${cython}; add a module for each")
  endif()

  set(is_stable FALSE)
  if(arg_STABLE OR arg_LIMITED_API)
    set(is_stable TRUE)
    _interop_stable("${target}" "${arg_STABLE}" "${arg_LIMITED_API}" stable)
    string(JSON suffix GET "${stable}" suffix)
  else()
    set(suffix "${interop_suffix}")
  endif()

  set(folder "${CMAKE_CURRENT_BINARY_DIR}/${target}.interop")
  _interop_choose_folders("${name}${suffix}" "${folder}/module" folders)
  set(sources)
  foreach(source ${arg_UNPARSED_ARGUMENTS})
    if(source MATCHES "\\.pyx$")
      _interop_translate("${source}" "${arg_MODULE}" "${folder}" ${is_stable} translated)
      list(APPEND sources "${translated}")
    else()
      list(APPEND sources "${source}")
    endif()
  endforeach()

  add_library(${target} MODULE ${sources})
  # Before all others: the headers that were cut down to what the sources use.
  target_include_directories(${target} BEFORE PRIVATE "${folder}/include" "${CMAKE_CURRENT_SOURCE_DIR}")
  target_link_libraries(${target} PRIVATE Python::Module)
  # Without a build type CMake does not optimise at all.
  target_compile_options(${target} PRIVATE "$<$<AND:$<CONFIG:>,$<COMPILE_LANGUAGE:CXX>>:-O2>")
  if(is_stable)
    _interop_list("${stable}" include_dirs include_dirs)
    _interop_list("${stable}" cflags flags)
    list(FILTER flags EXCLUDE REGEX "^-std=") # cxx_std_20 says it, and lets a target ask for more
    target_include_directories(${target} PRIVATE ${include_dirs})
    target_compile_features(${target} PRIVATE cxx_std_20)
    target_compile_options(${target} PRIVATE ${flags})
    _interop_list("${stable}" ldflags ldflags)
    target_link_options(${target} PRIVATE ${ldflags})
    _interop_list("${stable}" library_dirs library_dirs)
    _interop_list("${stable}" libraries libraries)
    # By its path, so that a module is linked again when it changes.
    target_link_libraries(${target} PRIVATE "${library_dirs}/lib${libraries}.a")
    set_target_properties(${target} PROPERTIES PREFIX "" OUTPUT_NAME "${name}" SUFFIX "${suffix}" ${folders})
    return()
  endif()
  target_link_libraries(${target} PRIVATE interop::interop)
  set(native "_${name}_${interop_abi}")
  set_target_properties(
    ${target}
    PROPERTIES PREFIX ""
               OUTPUT_NAME "${native}"
               SUFFIX "${suffix}"
               ${folders}
               CXX_VISIBILITY_PRESET hidden
               # The bootstrap imports torch, and so its libraries are there; a path would be this machine's.
               SKIP_BUILD_RPATH TRUE)

  add_library(${target}_bootstrap MODULE "${interop_bootstrap}")
  target_link_libraries(${target}_bootstrap PRIVATE Python::Module)
  target_compile_features(${target}_bootstrap PRIVATE cxx_std_20)
  target_compile_definitions(
    ${target}_bootstrap PRIVATE "INTEROP_INIT=PyInit_${name}" "INTEROP_MODULE=\"${name}\"" "INTEROP_ABI=\"${interop_abi}\""
                                "INTEROP_NATIVE=\"${native}${suffix}\"")
  set_target_properties(${target}_bootstrap PROPERTIES PREFIX "" OUTPUT_NAME "${name}" SUFFIX "${suffix}" ${folders})
  add_dependencies(${target} ${target}_bootstrap)
endfunction()

# _interop_choose_folders(<file> <own> <result>): the properties of a target with its output folders, which are CMake's
# choice, or <own> if another module, of a different package, writes <file> there.
function(_interop_choose_folders file own result)
  set(folder "${CMAKE_LIBRARY_OUTPUT_DIRECTORY}")
  if(NOT folder)
    set(folder "${CMAKE_CURRENT_BINARY_DIR}")
  endif()
  set(properties LIBRARY_OUTPUT_DIRECTORY "${folder}")
  set(moved LIBRARY_OUTPUT_DIRECTORY "${own}")
  get_property(is_multi_config GLOBAL PROPERTY GENERATOR_IS_MULTI_CONFIG)
  set(configs "${CMAKE_BUILD_TYPE}")
  if(is_multi_config)
    set(configs "${CMAKE_CONFIGURATION_TYPES}")
  endif()
  set(outputs)
  foreach(config ${configs})
    string(TOUPPER "${config}" config)
    set(of_config)
    if(is_multi_config)
      set(of_config "/${config}")
    endif()
    if(CMAKE_LIBRARY_OUTPUT_DIRECTORY_${config})
      list(APPEND outputs "${CMAKE_LIBRARY_OUTPUT_DIRECTORY_${config}}/${file}")
      list(APPEND moved LIBRARY_OUTPUT_DIRECTORY_${config} "${own}${of_config}")
    else()
      list(APPEND outputs "${folder}/${file}")
    endif()
  endforeach()
  if(NOT outputs)
    set(outputs "${folder}/${file}")
  endif()
  get_property(taken GLOBAL PROPERTY interop_modules)
  foreach(output ${outputs})
    if("${output}" IN_LIST taken)
      set(properties ${moved})
    endif()
  endforeach()
  set_property(GLOBAL APPEND PROPERTY interop_modules ${outputs})
  set(${result} "${properties}" PARENT_SCOPE)
endfunction()

# interop_install_module(<target> DESTINATION <folder>): both files of a module, or the one of a stable module.
function(interop_install_module target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "DESTINATION" "")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "interop_install_module(${target}): it takes only DESTINATION, got ${arg_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT arg_DESTINATION)
    message(FATAL_ERROR "interop_install_module(${target}): DESTINATION is missing: the package's folder, or \".\"")
  endif()
  set(targets ${target})
  if(TARGET ${target}_bootstrap)
    list(APPEND targets ${target}_bootstrap)
  endif()
  install(TARGETS ${targets} LIBRARY DESTINATION "${arg_DESTINATION}")
endfunction()

# Sets `result` to what a stable module is compiled with, in JSON.
function(_interop_stable target torch python result)
  set(arguments)
  if(torch)
    list(APPEND arguments --stable "${torch}")
  endif()
  if(python)
    list(APPEND arguments --py-limited-api "${python}")
  endif()
  execute_process(
    COMMAND "${Python_EXECUTABLE}" -P -m interop config --json ${arguments}
    OUTPUT_VARIABLE json
    ERROR_VARIABLE error
    RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "interop_add_cython_module(${target}): STABLE and LIMITED_API: ${error}")
  endif()
  set(${result} "${json}" PARENT_SCOPE)
endfunction()

# Sets `result` to the C++ file that a rule makes of a .pyx.
function(_interop_translate source module folder is_stable result)
  get_filename_component(source "${source}" ABSOLUTE)
  get_filename_component(stem "${source}" NAME_WE)
  set(output "${folder}/${stem}.cpp")
  file(MAKE_DIRECTORY "${folder}/include")
  add_custom_command(
    OUTPUT "${output}"
    COMMAND "${Python_EXECUTABLE}" -P -m interop cythonize "${source}" --output "${output}" --headers "${folder}/include"
            --module "${module}" --include "${CMAKE_CURRENT_SOURCE_DIR}" --depfile "${folder}/${stem}.d"
            $<$<BOOL:${is_stable}>:--stable>
    DEPENDS "${source}"
    DEPFILE "${folder}/${stem}.d"
    COMMENT "Translating ${stem}.pyx to C++"
    COMMAND_EXPAND_LISTS # of nothing, where it is not stable
    VERBATIM)
  set(${result} "${output}" PARENT_SCOPE)
endfunction()
